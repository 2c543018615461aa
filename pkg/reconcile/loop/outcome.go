package loop

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// verdict is the effect of an Outcome on the phases after it.
type verdict int

const (
	verdictNone verdict = iota // the zero Outcome: a mistake of the phase
	verdictContinue
	verdictWait
	verdictStall
	verdictBlock
	verdictPostpone
	verdictPersist
	verdictNote
	verdictSkip
)

// String returns the name of the verdict for logs.
func (v verdict) String() string {
	switch v {
	case verdictContinue:
		return "continue"
	case verdictWait:
		return "wait"
	case verdictStall:
		return "stall"
	case verdictBlock:
		return "block"
	case verdictPostpone:
		return "postpone"
	case verdictPersist:
		return "persist"
	case verdictNote:
		return "note"
	case verdictSkip:
		return "skip"
	case verdictNone:
	}

	return "none"
}

// Outcome is the result of a phase. Make it with Continue, Note, Skip, Wait, Overtaken, Stall, Block, Postpone or
// Persist.
type Outcome struct {
	verdict   verdict
	reason    string
	message   string
	after     time.Duration
	overtaken bool
}

// Continue means that the phase's condition is true; the next phase runs.
func Continue(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictContinue, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Wait means that something has to happen first, without a person's help. The object is reconciled again after the
// given time at the latest; 0 means that a watch should trigger it, with the kind's interval as the safety net. A
// negative time is one that has come while the run was at work, so the next run follows at once.
func Wait(after time.Duration, reason, format string, args ...any) Outcome {
	if after < 0 {
		after = atOnce
	}

	return Outcome{verdict: verdictWait, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// atOnce is the shortest pause: 0 has a meaning of its own.
const atOnce = time.Millisecond

// Overtaken means that somebody else changed the data first, so the run has to start again: like Wait, with a short
// pause that grows while this happens repeatedly.
func Overtaken(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictWait, reason: reason, message: fmt.Sprintf(format, args...), overtaken: true}
}

// Stall means that nothing goes on until a person acts. The object is still reconciled at its interval, because the
// remedy may happen elsewhere.
func Stall(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictStall, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Block is what a deletion waits for: like Wait, and the condition DeletionBlocked shows it. In a phase that is not of
// a deletion it is a Wait.
func Block(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictBlock, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// Postpone means that the result is not known yet and will be in a moment: the object is reconciled again after the
// given time, and its status stays as it is. It is for the first moments of a process, or of an outage, which would
// otherwise write every status twice, and of an object that is about to have something to show. It must not be returned
// for long.
func Postpone(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictPostpone, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// Persist means that the status has to be stored before the phase goes on: the phase is about to do something remote,
// and after a crash the status is all that is known of it. The phase or Report has put what is needed there. The object
// is reconciled again as soon as the cache has that status; an earlier run would find the old status, and return
// Persist again.
func Persist(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictPersist, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Note means that the phase's condition is not as it should be, but that this does not keep the object from being
// Ready: the next phase runs. It is for findings that a user only wants to see.
func Note(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictNote, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Skip means that the phase does not apply: its condition is Unknown, the next phase runs, and Ready has the result of
// the phase before.
func Skip(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictSkip, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Proceed is for a step of a phase that found nothing in the way: the phase goes on, and says itself what came of it. It has
// no reason, so it is not the outcome of a phase.
func Proceed() Outcome { return Outcome{verdict: verdictContinue} }

// Within returns the same outcome with a time after which the object is reconciled again at the latest; 0 changes
// nothing.
func (o Outcome) Within(after time.Duration) Outcome {
	if after > 0 && (o.after == 0 || after < o.after) {
		o.after = after
	}

	return o
}

// Postponed returns a Postpone instead of the outcome, which is not to be shown yet.
func (o Outcome) Postponed(after time.Duration) Outcome {
	return Postpone(after, o.reason, "%s", o.message)
}

// Reason returns the reason of the outcome.
func (o Outcome) Reason() string { return o.reason }

// Message returns the message of the outcome.
func (o Outcome) Message() string { return o.message }

// Continues reports whether the next phase runs.
func (o Outcome) Continues() bool {
	return o.verdict == verdictContinue || o.verdict == verdictNote || o.verdict == verdictSkip
}

// Stalls reports whether a person has to act.
func (o Outcome) Stalls() bool { return o.verdict == verdictStall }

// Blocks reports whether a deletion is blocked.
func (o Outcome) Blocks() bool { return o.verdict == verdictBlock }

// Postpones reports whether the result is not known yet.
func (o Outcome) Postpones() bool { return o.verdict == verdictPostpone }

// Persists reports whether the status has to be stored before the phase goes on.
func (o Outcome) Persists() bool { return o.verdict == verdictPersist }

// IsOvertaken reports whether the pause grows from one such outcome to the next.
func (o Outcome) IsOvertaken() bool { return o.overtaken }

// After returns how long to wait at most; 0 if the interval decides.
func (o Outcome) After() time.Duration { return o.after }

// Object is what the loop can reconcile: all kinds of v1alpha1.
type Object interface {
	client.Object
	v1alpha1.Reconcilable
}

// Phase is one step of a reconcile. S is the scope that the phases of one run
// share.
type Phase[S any] struct {
	// Condition is the condition type that belongs to this phase alone. It may be empty: then the outcome is only in
	// the log and in Ready. The phases of a deletion have none.
	Condition string
	// Abnormal inverts the condition's polarity: True means that something is wrong, as in "Drifted". It concerns the
	// condition only.
	Abnormal bool
	// Run carries out the step. An error is shown with its text and the reason Error, and tried again with growing
	// pauses; the text must not contain a secret.
	Run func(ctx context.Context, scope S) (Outcome, error)
}

// TransientCondition is a condition that exists only while it is true, beside those that the loop derives itself.
type TransientCondition struct {
	// Condition is its type.
	Condition string
	// On sets the condition to True; otherwise it is removed.
	On bool
	// Reason and Message are those of the condition.
	Reason, Message string
}

// Kind describes one kind to the loop. Every field without "may be" is required.
type Kind[O Object, S any] struct {
	// New makes an empty object to read into.
	New func() O
	// Finalizer keeps a deleted object until its Delete phases are done. It may be empty: then the loop ignores deleted
	// objects.
	Finalizer string
	// Interval returns how often the object is reconciled without a trigger. The loop subtracts up to a tenth at
	// random.
	Interval func(O) time.Duration
	// Due returns when the object has to be reconciled at the latest, whatever its phases found, because its status
	// names a time at which something happens. 0: there is no such time. Nothing is subtracted from it. May be nil.
	Due func(O) time.Duration
	// Suspended reports whether the object is suspended. May be nil.
	Suspended func(O) bool
	// RunSuspended runs the phases of a suspended object, too. They must then check the suspension themselves, and
	// write nothing anywhere.
	RunSuspended bool
	// Prepare writes into the object's status what has to be known of a suspended object, too. It is called before each
	// run, and must not touch conditions. May be nil.
	Prepare func(context.Context, O)
	// NewScope makes the scope of one run.
	NewScope func(O) S
	// Phases are run in order while each continues.
	Phases []Phase[S]
	// Delete are run in order on a deleted object that has the finalizer. When
	// all continue, the finalizer is removed.
	Delete []Phase[S]
	// Report writes what the phases found into the object's status, whichever
	// phase was the last. It must not touch conditions. May be nil.
	Report func(context.Context, S)
	// Transient returns the conditions of the kind that exist only while they are true, as the run found them. Conditions
	// that it does not return stay as they are. May be nil.
	Transient func(S) []TransientCondition
	// Close releases what a scope holds, at the end of its run. May be nil.
	Close func(S)
	// StatusWritten is called when a run has written a status, with the object as it was before and as it is now: for events that
	// come once, also if an earlier write failed. May be nil.
	StatusWritten func(before, after O)
	// Reported is called with every object whose status is up to date, for metrics. May be nil.
	Reported func(O)
	// Gone is called when an object no longer exists. May be nil.
	Gone func(types.NamespacedName)
}

// Settings are what the loop needs besides the kind.
type Settings struct {
	// Client reads objects and patches finalizers and statuses.
	Client client.Client
	// Events receives one event each time that Ready changes.
	Events events.EventRecorder
	// Timeout bounds the phases of one run together. Default: DefaultTimeout.
	Timeout time.Duration
	// Jitter varies an interval. If it is nil, up to a tenth is subtracted at random.
	Jitter func(time.Duration) time.Duration
}

// DefaultTimeout bounds the phases of one run together, in time.
const DefaultTimeout = 3 * time.Minute

// writeTimeout bounds the writes after the phases. They also happen while the process stops, so that the results of the
// run are not lost.
const writeTimeout = 20 * time.Second
