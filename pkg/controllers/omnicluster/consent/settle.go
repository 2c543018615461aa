package consent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Settling records since when the set of destructive changes of a plan is unchanged. It is a value: settle returns the
// next one. The zero value has no such changes.
type Settling struct {
	uid     types.UID // of the OmniCluster
	keys    []string  // of the changes, sorted
	since   time.Time
	settled bool
}

// settle returns the state for the destructive changes that a plan has now. They are settled when they have been the
// same for the settle time. The rest of a settled set stays settled while the set is carried out; a new change starts
// the time again.
func (s Settling) settle(uid types.UID, keys []string, now time.Time, settleTime time.Duration) Settling {
	keys = slices.Sorted(slices.Values(keys))

	switch {
	case len(keys) == 0:
		return Settling{uid: uid}
	case s.uid != uid:
		return Settling{uid: uid, keys: keys, since: now}
	case s.settled && subset(keys, s.keys):
		// A change that is no longer among them counts as new when it comes back.
		s.keys = keys

		return s
	case !slices.Equal(keys, s.keys):
		return Settling{uid: uid, keys: keys, since: now}
	}

	s.settled = now.Sub(s.since) >= settleTime

	return s
}

// remaining returns how long the set still has to stay unchanged.
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
