package consent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Settling remembers since when the set of destructive changes of a plan is
// unchanged. It is a value: settle returns the next one. The zero value
// has no such changes.
type Settling struct {
	uid     types.UID // of the OmniCluster
	keys    []string  // of the changes, sorted
	since   time.Time
	settled bool
}

// settle takes over the destructive changes that a plan has now. They are
// settled when they have been the same for the settle time. What is left of a
// settled set stays settled while it is carried out; anything new starts over.
func (s Settling) settle(uid types.UID, keys []string, now time.Time, settleTime time.Duration) Settling {
	keys = slices.Sorted(slices.Values(keys))

	switch {
	case len(keys) == 0:
		return Settling{uid: uid}
	case s.uid != uid:
		return Settling{uid: uid, keys: keys, since: now}
	case s.settled && subset(keys, s.keys):
		// What is not among them any more, and comes back, is new.
		s.keys = keys

		return s
	case !slices.Equal(keys, s.keys):
		return Settling{uid: uid, keys: keys, since: now}
	}

	s.settled = now.Sub(s.since) >= settleTime

	return s
}

// remaining is how long the set has to stay as it is until it is settled.
func (s Settling) remaining(now time.Time, settleTime time.Duration) time.Duration {
	if s.settled || len(s.keys) == 0 {
		return 0
	}

	return max(settleTime-now.Sub(s.since), 0)
}

// subset reports whether every key of a sorted list is in another sorted list.
func subset(some, all []string) bool {
	for _, key := range some {
		if _, found := slices.BinarySearch(all, key); !found {
			return false
		}
	}

	return true
}
