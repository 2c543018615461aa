package loop

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Who is overtaken once tries again at once; who always is must not take the place
// of the others.
func TestOvertakenAgainAndAgain(t *testing.T) {
	overtaken := true
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		if overtaken {
			return Overtaken("Conflict", "somebody else was quicker"), nil
		}

		return Continue("Fine", ""), nil
	}})

	now := time.Unix(1000, 0)
	r := New(f.kind, Settings{Client: f.client, Events: f.events})
	r.failures.now = func() time.Time { return now }
	pause := func() time.Duration {
		t.Helper()

		got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
		if err != nil {
			t.Fatal(err)
		}

		return got.RequeueAfter
	}

	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		if got := pause(); got != want*time.Millisecond {
			t.Errorf("got %s, want %d ms", got, want)
		}

		now = now.Add(want * time.Millisecond)
	}

	if got, want := conditions(f.get())["Ready"], "False Conflict: somebody else was quicker"; got != want {
		t.Errorf("Ready is %q, want %q", got, want)
	}

	// An event shortens a pause, but does not end it.
	pause()

	if got := pause(); got != time.Second {
		t.Errorf("held for %s", got)
	}

	now = now.Add(time.Second)
	overtaken = false
	pause()

	overtaken = true
	if got := pause(); got != 100*time.Millisecond {
		t.Errorf("after a success: %s", got)
	}

	// What the user says is followed at once.
	object := f.get()
	object.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}

	if err := f.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}

	if got := pause(); got != 200*time.Millisecond {
		t.Errorf("on request: %s", got)
	}
}
