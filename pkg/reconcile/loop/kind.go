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
	// Condition is the condition type that belongs to this phase alone. The
	// phases of a deletion have none.
	Condition string
	// Abnormal turns the condition's polarity around: True says that something is
	// wrong, as in "Drifted". It is about the condition only.
	Abnormal bool
	// Run does the step. An error is shown as reason Error with its text, and
	// tried again with growing pauses; the text must hold nothing secret.
	Run func(ctx context.Context, scope S) (Outcome, error)
}

// Mark is a condition that exists only while it is true, beside those that the loop derives itself.
type Mark struct {
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
	// Finalizer keeps a deleted object until its Delete phases are done. It may
	// be empty: then a deleted object is none of the loop's business.
	Finalizer string
	// Interval is how often the object is looked at when nothing triggers it.
	// The loop takes up to a tenth off at random.
	Interval func(O) time.Duration
	// Due is in how long the object is looked at at the latest, whatever its
	// phases found: its status says that something happens then. 0: nothing does.
	// Nothing is taken off it. May be nil.
	Due func(O) time.Duration
	// Suspended reports whether the object asks to be left alone. May be nil.
	Suspended func(O) bool
	// RunSuspended runs the phases of a suspended object too. They must then
	// look at the suspension themselves, and write nothing anywhere.
	RunSuspended bool
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
	// Marks are the conditions of the kind that exist only while they are true, as the
	// run found them. What is not among them stays as it is. May be nil.
	Marks func(S) []Mark
	// Close gives back what a scope holds, at the end of its run. May be nil.
	Close func(S)
	// Reported is told of every object whose status stands as it should now,
	// for metrics. May be nil.
	Reported func(O)
	// Gone is told that an object does not exist any more. May be nil.
	Gone func(types.NamespacedName)
}

// Settings are what the loop needs besides the kind.
type Settings struct {
	// Client reads objects and patches finalizers and statuses.
	Client client.Client
	// Events takes one event each time that Ready changes.
	Events events.EventRecorder
	// Timeout bounds the phases of one run together. Default: DefaultTimeout.
	Timeout time.Duration
	// Failures, if it is the controller's rate limiter as well, keeps events from
	// defeating the pauses after errors. May be nil.
	Failures *Failures
	// Jitter varies an interval; nil takes up to a tenth off at random.
	Jitter func(time.Duration) time.Duration
}

// DefaultTimeout bounds the phases of one run together, in time.
const DefaultTimeout = 3 * time.Minute

// writeTimeout bounds the writes after the phases. They also happen when the
// process is about to stop, so that what was done is not forgotten.
const writeTimeout = 20 * time.Second
