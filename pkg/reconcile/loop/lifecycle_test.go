package loop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// kstatusOf is what kstatus, and so Flux and kubectl-like tools, make of an object.
func kstatusOf(t *testing.T, object *v1alpha1.OmniConnection) status.Status {
	t.Helper()

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}

	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}

	return result.Status
}

// checkKstatus checks the rules: what kstatus says follows from Ready, and
// Reconciling and Stalled exclude each other and are True if they exist.
func checkKstatus(t *testing.T, object *v1alpha1.OmniConnection) {
	t.Helper()

	want := status.InProgressStatus

	switch list := object.Status.Conditions; {
	case apimeta.IsStatusConditionTrue(list, "Ready"):
		want = status.CurrentStatus
	case apimeta.IsStatusConditionTrue(list, "Stalled"):
		want = status.FailedStatus
	}

	if got := kstatusOf(t, object); got != want {
		t.Errorf("kstatus %s, want %s", got, want)
	}

	present := 0

	for _, c := range object.Status.Conditions {
		if c.Type != "Reconciling" && c.Type != "Stalled" {
			continue
		}

		present++

		if c.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s", c.Type, c.Status)
		}
	}

	if present > 1 {
		t.Error("Reconciling and Stalled at the same time")
	}
}

func TestSuspended(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Fine", Message: "as before", LastTransitionTime: metav1.Unix(9, 0), ObservedGeneration: 2}

	for name, test := range map[string]struct {
		conditions   []metav1.Condition
		runSuspended bool
		phase        Outcome
		want         map[string]string
		ran          int
	}{
		"never had a Ready": {
			conditions: connection().Status.Conditions,
			want: map[string]string{
				"Ready":     "Unknown Suspended: spec.suspend is set: nothing is changed",
				"Suspended": "True Suspended: spec.suspend is set: nothing is changed",
			},
		},
		"was Ready": {
			conditions: []metav1.Condition{ready},
			want: map[string]string{
				"Ready": "True Fine: as before", "Suspended": "True Suspended: spec.suspend is set: nothing is changed",
			},
		},
		"was stalled": {
			conditions: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "Refused", LastTransitionTime: metav1.Unix(9, 0)},
				{Type: "Stalled", Status: "True", Reason: "Refused", LastTransitionTime: metav1.Unix(9, 0)},
			},
			want: map[string]string{
				"Ready": "False Refused: ", "Suspended": "True Suspended: spec.suspend is set: nothing is changed",
			},
		},
		"phases that may run while suspended": {
			conditions: []metav1.Condition{ready}, runSuspended: true, phase: Stall("Suspended", "2 changes wait"), ran: 1,
			want: map[string]string{
				"Ready": "True Fine: as before", "Suspended": "True Suspended: spec.suspend is set: nothing is changed",
				"First": "False Suspended: 2 changes wait",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := connection()
			object.Labels = map[string]string{"suspended": "true"}
			object.Status.Conditions = test.conditions

			ran := 0
			f := newFixture(t, object, Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
				ran++

				return test.phase, nil
			}})
			f.kind.RunSuspended = test.runSuspended

			if got, err := f.run(); err != nil || got.RequeueAfter != testInterval {
				t.Fatal(got, err)
			}

			if diff := cmp.Diff(test.want, conditions(f.get())); diff != "" {
				t.Error(diff)
			}

			if ran != test.ran {
				t.Errorf("the phase ran %d times", ran)
			}

			if got := f.get().Status.ObservedGeneration; got != 3 {
				t.Errorf("observedGeneration %d", got)
			}

			// kubectl wait takes no condition of an older generation.
			if ready := apimeta.FindStatusCondition(f.get().Status.Conditions, "Ready"); ready.ObservedGeneration != 3 {
				t.Errorf("Ready is of generation %d", ready.ObservedGeneration)
			}

			before := f.writes

			if _, err := f.run(); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(before, f.writes); diff != "" {
				t.Errorf("the second run wrote: %s", diff)
			}

			if apimeta.IsStatusConditionTrue(f.get().Status.Conditions, "Ready") && kstatusOf(t, f.get()) != status.CurrentStatus {
				t.Error("a suspended object that was Ready does not look current")
			}
		})
	}
}

func TestResumed(t *testing.T) {
	object := connection()
	object.Labels = map[string]string{"suspended": "true"}
	f := newFixture(t, object, phase("First", Continue("Fine", "ok"), nil))

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	resumed := f.get()
	resumed.Labels = nil

	if err := f.client.Update(t.Context(), resumed); err != nil {
		t.Fatal(err)
	}

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]string{"First": "True Fine: ok", "Ready": "True Fine: ok"}, conditions(f.get())); diff != "" {
		t.Error(diff)
	}
}

func TestRequestedAtIsEchoed(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":                        {nil, ""},
		"ours":                        {map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00Z"},
		"Flux":                        {map[string]string{v1alpha1.AnnotationFluxRequestedAt: "2026-01-02T00:00:00Z"}, "2026-01-02T00:00:00Z"},
		"both: the later":             {map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "2026-01-03T00:00:00Z", v1alpha1.AnnotationFluxRequestedAt: "2026-01-02T00:00:00Z"}, "2026-01-03T00:00:00Z"},
		"both: the later, in seconds": {map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "2026-01-03T00:00:00Z", v1alpha1.AnnotationFluxRequestedAt: "1767484800"}, "1767484800"},
		"both: the later, in another time zone": {map[string]string{
			v1alpha1.AnnotationReconcileRequestedAt: "2026-01-03T12:00:00Z", v1alpha1.AnnotationFluxRequestedAt: "2026-01-03T10:00:00.5-05:00",
		}, "2026-01-03T10:00:00.5-05:00"},
		"both: the earlier, in another time zone": {map[string]string{
			v1alpha1.AnnotationReconcileRequestedAt: "2026-01-03T12:00:00Z", v1alpha1.AnnotationFluxRequestedAt: "2026-01-03T13:00:00+02:00",
		}, "2026-01-03T12:00:00Z"},
		"both: the later, Flux": {map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "2026-01-03T00:00:00Z", v1alpha1.AnnotationFluxRequestedAt: "2026-01-04T00:00:00Z"}, "2026-01-04T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			object := connection()
			object.Annotations = test.annotations
			f := newFixture(t, object, phase("First", Stall("Bad", ""), nil))

			if _, err := f.run(); err != nil {
				t.Fatal(err)
			}

			if got := f.get().Status.LastHandledReconcileAt; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestFinalizerComesBeforeThePhases(t *testing.T) {
	f := newFixture(t, connection())
	f.kind.Phases = []Phase[*scope]{{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		if got := f.get().Finalizers; !cmp.Equal(got, []string{v1alpha1.Finalizer}) {
			t.Errorf("finalizers %q", got)
		}

		return Continue("Fine", ""), nil
	}}}

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}
}

func TestKindWithoutFinalizer(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Continue("Fine", ""), nil))
	f.kind.Finalizer = ""

	for range 2 {
		if _, err := f.run(); err != nil {
			t.Fatal(err)
		}
	}

	if diff := cmp.Diff(writes{Status: 1}, f.writes); diff != "" {
		t.Error(diff)
	}
}

func deleted(finalizers ...string) *v1alpha1.OmniConnection {
	object := connection()
	object.DeletionTimestamp = &metav1.Time{Time: time.Unix(100, 0)}
	object.Finalizers = finalizers
	object.Status.Conditions = []metav1.Condition{
		{Type: "First", Status: "True", Reason: "Fine", LastTransitionTime: metav1.Unix(9, 0)},
		{Type: "Ready", Status: "True", Reason: "Fine", LastTransitionTime: metav1.Unix(9, 0)},
	}

	return object
}

func TestDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		outcome Outcome
		want    map[string]string
		gone    bool
	}{
		"done": {outcome: Continue("Done", ""), gone: true},
		"on its way": {
			outcome: Wait(time.Second, "Deleting", "tearing down"),
			want: map[string]string{
				"First": "True Fine: ", "Ready": "False Deleting: tearing down", "Reconciling": "True Deleting: tearing down",
			},
		},
		"blocked": {
			outcome: Block(time.Second, "InUse", "cluster a"),
			want: map[string]string{
				"First": "True Fine: ", "Ready": "False InUse: cluster a", "Reconciling": "True InUse: cluster a",
				"DeletionBlocked": "True InUse: cluster a",
			},
		},
		"needs somebody": {
			outcome: Stall("RemoteLocked", "unlock it"),
			want: map[string]string{
				"First": "True Fine: ", "Ready": "False RemoteLocked: unlock it", "Reconciling": "True RemoteLocked: unlock it",
				"DeletionBlocked": "True RemoteLocked: unlock it",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, deleted(v1alpha1.Finalizer))
			f.kind.Delete = []Phase[*scope]{phase("", Continue("Fine", ""), nil), phase("", test.outcome, nil)}

			if _, err := f.run(); err != nil {
				t.Fatal(err)
			}

			object := &v1alpha1.OmniConnection{}
			err := f.client.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, object)

			if test.gone {
				if !apierrors.IsNotFound(err) {
					t.Fatalf("still there: %v", err)
				}

				return
			}

			if diff := cmp.Diff(test.want, conditions(object)); diff != "" {
				t.Error(diff)
			}

			if got := kstatusOf(t, object); got != status.TerminatingStatus {
				t.Errorf("kstatus %s", got)
			}

			before := f.writes
			if _, err = f.run(); err != nil || f.writes != before {
				t.Errorf("the second run wrote %v, %v", f.writes, err)
			}
		})
	}
}

// The suspension does not hold up a deletion.
func TestDeletionOfASuspendedObject(t *testing.T) {
	object := deleted(v1alpha1.Finalizer)
	object.Labels = map[string]string{"suspended": "true"}
	f := newFixture(t, object)
	f.kind.Delete = []Phase[*scope]{phase("", Continue("Done", ""), nil)}

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	err := f.client.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, &v1alpha1.OmniConnection{})
	if !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// Somebody else's finalizer: our part is over, nothing is touched any more.
func TestDeletionWithoutOurFinalizer(t *testing.T) {
	f := newFixture(t, deleted("example.com/other"), phase("First", Continue("Fine", ""), nil))

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(writes{}, f.writes); diff != "" {
		t.Error(diff)
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Stall("Bad", "%s", strings.Repeat("ä", 10000)), nil))

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	message := apimeta.FindStatusCondition(f.get().Status.Conditions, "Ready").Message
	if len(message) > maxMessageBytes || !strings.HasSuffix(message, "ä...") {
		t.Errorf("%d bytes, ends in %q", len(message), message[len(message)-6:])
	}
}

// What servers say is in messages, and in other fields of a status, as text that only shows itself, and a second run writes nothing.
func TestStatusIsPrintable(t *testing.T) {
	const said = "a\x1b[31m\u202e\n\u009bb"

	f := newFixture(t, connection(), phase("First", Stall("Bad", "%s", said), nil))
	f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = said }

	for range 2 {
		if _, err := f.run(); err != nil {
			t.Fatal(err)
		}
	}

	status := f.get().Status
	if got := apimeta.FindStatusCondition(status.Conditions, "Ready").Message; got != "a [31m   b" || status.Endpoint != "a [31m \n b" {
		t.Errorf("message %q, endpoint %q", got, status.Endpoint)
	}

	if f.writes.Status != 1 {
		t.Errorf("%+v", f.writes)
	}
}
