package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
