package consent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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

// MaxJoinWait is how long documents that go on changing may keep a machine from joining its cluster.
const MaxJoinWait = 30 * time.Second

// Joining records since when the documents of a cluster are unchanged. Omni may begin to install a machine as soon as a set
// lists it, so a machine joins when the documents have been the same for a time: those of one apply arrive one after the
// other, in any order, and the one with the settings of the machine may be the last. It is a value: next returns that of the
// next run. The zero value has seen no documents.
type Joining struct {
	documents string
	settles   time.Time // when the documents have been the same for long enough
	latest    time.Time // when the machines that wait may join whatever changes
	wait      bool      // the last run had machines that were to join
	open      bool      // and they were allowed to
}

// next returns the state in a run that finds these documents, and joins says whether machines are to join. The first look of a
// process counts as a change: when the documents changed before is not known. Machines that may join, and did not, wait anew
// when a document changes: Omni may refuse one of them for ever.
func (j Joining) next(documents string, joins bool, now time.Time, settleTime time.Duration) Joining {
	changed := documents != j.documents
	if changed {
		j.documents, j.settles = documents, now.Add(settleTime)
	}

	if !j.wait || j.open && changed {
		j.latest = now.Add(MaxJoinWait)
	}

	j.wait, j.open = joins, !now.Before(j.opens())

	return j
}

// opens returns when machines may join if no document changes until then.
func (j Joining) opens() time.Time {
	if j.latest.Before(j.settles) {
		return j.latest
	}

	return j.settles
}

// waitsForDocuments reports whether a change waits until the documents of the cluster are complete.
func (d Decision) waitsForDocuments(change plan.Change) bool {
	return d.machinesWait && change.BringsMachines()
}

// waitingForDocuments returns the changes that wait for that, and those that destroy and wait for them: what comes may
// replace what goes.
func (d Decision) waitingForDocuments() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldDocuments })
}

// documentsOutcome is Outcome for a plan of which nothing but changes of the documents holds a change; it continues if they
// hold none.
func (d Decision) documentsOutcome() loop.Outcome {
	waiting := d.waitingForDocuments()
	if len(waiting) == 0 {
		return loop.Proceed()
	}

	joining := d.Joining

	return loop.Wait(d.joinsIn(), v1alpha1.ReasonWaitingForDocuments,
		"documents of the cluster may still arrive: so that a machine has its settings before it joins, these changes wait until %s, or until %s at the latest if documents go on changing: %s",
		secondAfter(joining.opens()), secondAfter(joining.latest), ChangeNames(waiting))
}

// joinsIn returns after which time the next run is due because of machines that wait; 0 if none does.
func (d Decision) joinsIn() time.Duration {
	if !d.machinesWait {
		return 0
	}

	return max(d.Joining.opens().Sub(d.facts.Now), time.Millisecond)
}

// secondAfter returns a time for messages, rounded up: it has not come before.
func secondAfter(t time.Time) string { return words.Time(t.Add(time.Second - time.Nanosecond)) }
