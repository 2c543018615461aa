package consent

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

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
