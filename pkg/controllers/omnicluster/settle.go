package omnicluster

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// settling remembers since when the set of destructive changes of a plan is
// unchanged. It is a value: settle returns the next one.
type settling struct {
	uid     types.UID // of the OmniCluster
	keys    []string  // of the changes, sorted
	since   time.Time
	settled bool
}

// settle takes over the destructive changes that a plan has now. They are
// settled when they have been the same for the settle time. What is left of a
// settled set stays settled while it is carried out; anything new starts over.
func (s settling) settle(uid types.UID, keys []string, now time.Time, settleTime time.Duration) settling {
	keys = slices.Sorted(slices.Values(keys))

	switch {
	case len(keys) == 0:
		return settling{uid: uid}
	case s.uid != uid:
		return settling{uid: uid, keys: keys, since: now}
	case s.settled && subset(keys, s.keys):
		// What is not among them any more, and comes back, is new.
		s.keys = keys

		return s
	case !slices.Equal(keys, s.keys):
		return settling{uid: uid, keys: keys, since: now}
	}

	s.settled = now.Sub(s.since) >= settleTime

	return s
}

// remaining is how long the set has to stay as it is until it is settled.
func (s settling) remaining(now time.Time, settleTime time.Duration) time.Duration {
	if s.settled || len(s.keys) == 0 {
		return 0
	}

	return max(settleTime-now.Sub(s.since), 0)
}

// subset tells whether every key of a sorted list is in another sorted list.
func subset(some, all []string) bool {
	for _, key := range some {
		if _, found := slices.BinarySearch(all, key); !found {
			return false
		}
	}

	return true
}

// settleMemory keeps the settling of every cluster. It lives in the process: a
// restart starts every settle time again.
type settleMemory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]settling
}

func newSettleMemory() *settleMemory {
	return &settleMemory{entries: map[types.NamespacedName]settling{}}
}

// update replaces the settling of a cluster by its next one, and returns it.
func (m *settleMemory) update(name types.NamespacedName, next func(settling) settling) settling {
	m.mu.Lock()
	defer m.mu.Unlock()

	entry := next(m.entries[name])
	if len(entry.keys) == 0 {
		delete(m.entries, name)
	} else {
		m.entries[name] = entry
	}

	return entry
}

// forget drops a cluster.
func (m *settleMemory) forget(name types.NamespacedName) {
	m.update(name, func(settling) settling { return settling{} })
}
