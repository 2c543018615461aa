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
	deleted time.Time // when something of the namespace was deleted last
}

// Has reports whether there are such changes.
func (s Settling) Has() bool { return len(s.keys) > 0 }

// maxPostponement is how many settle times a row of deletions in a namespace may keep a change from being settled. A prune
// deletes one kind of the whole fleet after the other: what is left of a cluster in the middle of it is not what its user
// asked for.
const maxPostponement = 30

// from returns when the settle time begins. A long settle time is multiplied only if the product is a time that has passed:
// any other may be more than a Duration can hold.
func (s Settling) from(settleTime time.Duration) time.Time {
	if s.deleted.Sub(s.since)/maxPostponement > settleTime {
		return s.since.Add(maxPostponement * settleTime)
	}

	if s.deleted.After(s.since) {
		return s.deleted
	}

	return s.since
}

// settle returns the state for the destructive changes that a plan has now. They are settled when they have been the
// same for the settle time. The rest of a settled set stays settled while the set is carried out; a new change starts
// the time again, and so does a deletion in the namespace.
func (s Settling) settle(uid types.UID, keys []string, deleted, now time.Time, settleTime time.Duration) Settling {
	keys = slices.Sorted(slices.Values(keys))
	anew := Settling{uid: uid, keys: keys, since: now, deleted: deleted}

	switch {
	case len(keys) == 0:
		return Settling{uid: uid}
	case s.uid != uid:
		return anew
	case s.settled && subset(keys, s.keys):
		// A change that is no longer among them counts as new when it comes back.
		s.keys = keys

		return s
	case !slices.Equal(keys, s.keys):
		return anew
	}

	s.deleted = deleted
	s.settled = now.Sub(s.from(settleTime)) >= settleTime

	return s
}

// beginsAfter reports whether the settle time of a set that is not settled begins with this state, and not with the one before.
func (s Settling) beginsAfter(before Settling) bool {
	return s.Has() && !s.settled && (s.uid != before.uid || !slices.Equal(s.keys, before.keys))
}

// remaining returns how long the set still has to stay unchanged.
func (s Settling) remaining(now time.Time, settleTime time.Duration) time.Duration {
	if s.settled || len(s.keys) == 0 {
		return 0
	}

	return max(settleTime-now.Sub(s.from(settleTime)), 0)
}

// ends returns when the set is settled if it stays unchanged, and nothing is deleted in the namespace.
func (s Settling) ends(settleTime time.Duration) time.Time { return s.from(settleTime).Add(settleTime) }

// subset reports whether every key of a sorted list is in another sorted list.
func subset(some, all []string) bool {
	for _, key := range some {
		if _, found := slices.BinarySearch(all, key); !found {
			return false
		}
	}

	return true
}
