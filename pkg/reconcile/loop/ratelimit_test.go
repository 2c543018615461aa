package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

func TestPauseAfter(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 5: 800 * time.Millisecond, 11: 51200 * time.Millisecond, 12: time.Minute, 1000: time.Minute,
	} {
		if got := limiter.BackoffAfter(failures, firstPause, longestPause); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestPausesGrowAndAreSpread(t *testing.T) {
	failures := newFailures()
	seen := map[time.Duration]bool{}

	for i := 1; i <= 40; i++ {
		got, longest := failures.When(requestFor("a")), limiter.BackoffAfter(i, firstPause, longestPause)
		if got > longest || got < longest/2-time.Millisecond {
			t.Errorf("failure %d: %s of %s", i, got, longest)
		}

		seen[got] = true
	}

	if len(seen) < 20 {
		t.Errorf("only %d different pauses", len(seen))
	}

	if got := failures.NumRequeues(requestFor("a")); got != 40 || failures.NumRequeues(requestFor("b")) != 0 {
		t.Error(got)
	}
}

// The queue forgets an object after every run that was held back; that must not
// end the row of failures. The plain rate limiter does forget.
func TestOnlySuccessForgets(t *testing.T) {
	failures := newFailures()

	failures.When(requestFor("a"))
	failures.Forget(requestFor("a"))

	if got := failures.NumRequeues(requestFor("a")); got != 1 {
		t.Error(got)
	}

	failures.succeeded(requestFor("a"))

	if got := failures.NumRequeues(requestFor("a")); got != 0 {
		t.Error(got)
	}

	plain := RateLimiter()
	plain.When(requestFor("a"))
	plain.Forget(requestFor("a"))

	if got := plain.NumRequeues(requestFor("a")); got != 0 {
		t.Error(got)
	}
}

func TestHold(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failures := newFailures()
	failures.now = func() time.Time { return now }

	if got := failures.hold(requestFor("a"), "1"); got != 0 {
		t.Errorf("held back without a failure: %s", got)
	}

	for range 20 {
		failures.failed(requestFor("a"), "1")
		failures.When(requestFor("a"))
	}

	if got := failures.hold(requestFor("a"), "1"); got != 6*time.Second {
		t.Errorf("an event: %s", got)
	}

	if got := failures.hold(requestFor("b"), "1"); got != 0 {
		t.Errorf("another object: %s", got)
	}

	if got := failures.hold(requestFor("a"), "2"); got != 0 {
		t.Errorf("another content: %s", got)
	}

	now = now.Add(6 * time.Second)

	if got := failures.hold(requestFor("a"), "2"); got != 0 {
		t.Errorf("later: %s", got)
	}
}

// A storm of events on an object that fails costs a few runs, not one for each;
// what the user says is followed at once.
func TestStormOnAFailingObject(t *testing.T) {
	foreigntest.Sequential(t)

	runs := 0
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		runs++

		return Outcome{}, errors.New("no")
	}})

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := New(f.kind, Settings{Client: f.client, Events: f.events})
	failures := r.Failures()
	failures.now = func() time.Time { return now }

	wake := func() {
		if _, err := r.Reconcile(t.Context(), requestFor("main")); err != nil {
			failures.When(requestFor("main")) // as the controller does
		} else {
			failures.Forget(requestFor("main"))
		}
	}

	// Ten minutes of a hundred events in a second.
	for range 60_000 {
		wake()

		now = now.Add(10 * time.Millisecond)
	}

	if runs < 100 || runs > 120 {
		t.Errorf("%d runs", runs)
	}

	before := runs
	object := f.get()
	object.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}

	if err := f.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}

	wake()
	wake()

	if runs != before+1 {
		t.Errorf("%d runs after a request", runs-before)
	}
}
