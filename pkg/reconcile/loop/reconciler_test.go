package loop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const testInterval = 5 * time.Minute

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")

	for name, test := range map[string]struct {
		second     Outcome
		err        error
		want       reconcile.Result
		wantErr    error
		conditions map[string]string
		event      string
	}{
		"done": {
			second: Continue("Connected", "all is well"),
			want:   reconcile.Result{RequeueAfter: testInterval},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "True Connected: all is well",
				"Third": "True Fine: third", "Ready": "True Fine: third",
			},
			event: "Normal Fine third",
		},
		"wait with a time": {
			second: Wait(7*time.Second, "NotYet", "soon %d%%", 50),
			want:   reconcile.Result{RequeueAfter: 7 * time.Second},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False NotYet: soon 50%", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False NotYet: soon 50%", "Reconciling": "True NotYet: soon 50%",
			},
			event: "Normal NotYet soon 50%",
		},
		"wait for a connection that cannot be used is a warning": {
			second: Wait(time.Second, "ConnectionNotReady", "no session"),
			want:   reconcile.Result{RequeueAfter: time.Second},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False ConnectionNotReady: no session", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False ConnectionNotReady: no session", "Reconciling": "True ConnectionNotReady: no session",
			},
			event: "Warning ConnectionNotReady no session",
		},
		"wait for a time that has come while the run was at work": {
			second: Wait(-time.Second, "NotYet", "now"),
			want:   reconcile.Result{RequeueAfter: time.Millisecond},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False NotYet: now", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False NotYet: now", "Reconciling": "True NotYet: now",
			},
			event: "Normal NotYet now",
		},
		"wait without a time falls back to the interval": {
			second: Wait(0, "NotYet", "soon"),
			want:   reconcile.Result{RequeueAfter: testInterval},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False NotYet: soon", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False NotYet: soon", "Reconciling": "True NotYet: soon",
			},
			event: "Normal NotYet soon",
		},
		"wait for what looks wrong is a warning": {
			second: Wait(0, "Unreachable", "no answer"),
			want:   reconcile.Result{RequeueAfter: testInterval},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False Unreachable: no answer", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False Unreachable: no answer", "Reconciling": "True Unreachable: no answer",
			},
			event: "Warning Unreachable no answer",
		},
		"wait longer than the interval": {
			second: Wait(time.Hour, "NotYet", "later"),
			want:   reconcile.Result{RequeueAfter: testInterval},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False NotYet: later", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False NotYet: later", "Reconciling": "True NotYet: later",
			},
			event: "Normal NotYet later",
		},
		"stall is tried again at the interval": {
			second: Stall("Refused", "fix it"),
			want:   reconcile.Result{RequeueAfter: testInterval},
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False Refused: fix it", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False Refused: fix it", "Stalled": "True Refused: fix it",
			},
			event: "Warning Refused fix it",
		},
		"error": {
			err: boom, wantErr: boom,
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False Error: boom", "Third": "Unknown Blocked: waits for Second",
				"Ready": "False Error: boom", "Reconciling": "True Error: boom",
			},
			event: "Warning Error boom",
		},
		"no outcome is an error": {
			wantErr: errNoOutcome,
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False Error: a phase ended without an outcome",
				"Third": "Unknown Blocked: waits for Second",
				"Ready": "False Error: a phase ended without an outcome", "Reconciling": "True Error: a phase ended without an outcome",
			},
			event: "Warning Error a phase ended without an outcome",
		},
		"that of a step is none": {
			second: Proceed(), wantErr: errNoOutcome,
			conditions: map[string]string{
				"First": "True Found: found it", "Second": "False Error: a phase ended without an outcome",
				"Third": "Unknown Blocked: waits for Second",
				"Ready": "False Error: a phase ended without an outcome", "Reconciling": "True Error: a phase ended without an outcome",
			},
			event: "Warning Error a phase ended without an outcome",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, connection(),
				phase("First", Continue("Found", "found it"), nil),
				phase("Second", test.second, test.err),
				phase("Third", Continue("Fine", "third"), nil))

			for i := range 3 {
				got, err := f.run()
				if got != test.want || !errors.Is(err, test.wantErr) {
					t.Fatalf("run %d: %v, %v", i, got, err)
				}
			}

			object := f.get()
			if diff := cmp.Diff(test.conditions, conditions(object)); diff != "" {
				t.Error(diff)
			}

			if object.Status.ObservedGeneration != 3 {
				t.Errorf("observedGeneration %d", object.Status.ObservedGeneration)
			}

			for _, c := range object.Status.Conditions {
				if c.ObservedGeneration != 3 {
					t.Errorf("observedGeneration of %s: %d", c.Type, c.ObservedGeneration)
				}
			}

			if diff := cmp.Diff(writes{Meta: 1, Status: 1}, f.writes); diff != "" {
				t.Errorf("writes of three runs: %s", diff)
			}

			if diff := cmp.Diff([]string{test.event}, f.events.New()); diff != "" {
				t.Error(diff)
			}

			checkKstatus(t, object)
		})
	}
}

func TestReportAndReported(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Stall("Bad", "no"), nil))
	f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = "https://reported" }

	var told []string

	closed := 0
	f.kind.Close = func(*scope) { closed++ }

	f.kind.Reported = func(o *v1alpha1.OmniConnection) { told = append(told, o.Status.Endpoint) }

	for range 2 {
		if _, err := f.run(); err != nil {
			t.Fatal(err)
		}
	}

	if closed != 2 {
		t.Errorf("%d scopes closed", closed)
	}

	if got := f.get().Status.Endpoint; got != "https://reported" {
		t.Errorf("endpoint %q", got)
	}

	if diff := cmp.Diff([]string{"https://reported", "https://reported"}, told); diff != "" {
		t.Error(diff)
	}

	if f.writes.Status != 1 {
		t.Errorf("%d status writes", f.writes.Status)
	}
}

// Nothing is known yet: the status stays as it is, whatever was written in memory.
func TestPostponedRunWritesNothing(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Postpone(time.Second, "NotYet", "soon"), nil))
	f.kind.Finalizer = ""
	f.kind.Reported = func(*v1alpha1.OmniConnection) { t.Error("reported") }

	got, err := f.run()
	if err != nil || got.RequeueAfter != time.Second {
		t.Fatal(got, err)
	}

	if diff := cmp.Diff(writes{}, f.writes); diff != "" {
		t.Error(diff)
	}
}

func TestGone(t *testing.T) {
	f := newFixture(t, connection())

	var gone []types.NamespacedName

	f.kind.Gone = func(name types.NamespacedName) { gone = append(gone, name) }

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	if got, err := f.run(); err != nil || got != (reconcile.Result{}) {
		t.Fatal(got, err)
	}

	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "team", Name: "main"}}, gone); diff != "" {
		t.Error(diff)
	}
}

// A status that was computed from an old object must not overwrite a newer one.
func TestConflictIsTriedAgain(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Continue("Fine", ""), nil))
	f.before = func(c client.Client) {
		newer := f.get()
		newer.Labels = map[string]string{"changed": "meanwhile"}

		if err := c.Update(t.Context(), newer); err != nil {
			t.Error(err)
		}

		f.before = nil
	}

	got, err := f.run()
	if err != nil || got.RequeueAfter != conflictPause {
		t.Fatal(got, err)
	}

	if events := f.events.New(); events != nil {
		t.Errorf("an event for a status that was not written: %q", events)
	}

	if _, err = f.run(); err != nil || conditions(f.get())["Ready"] != "True Fine: " {
		t.Error(conditions(f.get()), err)
	}
}

func TestReadError(t *testing.T) {
	f := newFixture(t, connection())
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("omniconnections"), "main", errors.New("no"))
	f.client = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	})

	if _, err := f.run(); !errors.Is(err, forbidden) {
		t.Fatal(err)
	}
}

// The process stops while a phase works: nothing is shown, nothing is lost.
func TestInterruptedRunShowsNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(ctx context.Context, _ *scope) (Outcome, error) {
		stop()

		return Outcome{}, ctx.Err()
	}})
	f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = "https://omni" }

	r := New(f.kind, Settings{Client: f.client, Events: f.events})

	_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	after := f.get()
	if got := conditions(after); got["Ready"] != "Unknown Pending: " || got["First"] != "" || len(f.events.All()) > 0 {
		t.Errorf("%v, events %q", got, f.events.All())
	}

	if after.Status.Endpoint != "https://omni" {
		t.Errorf("what the run has done is lost: endpoint %q", after.Status.Endpoint)
	}
}

// A phase may take the end of its call for a failure of the other side. What the run has done is written all the same.
func TestInterruptedCallShowsNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		stop()

		return Wait(0, "Unreachable", "context canceled"), nil
	}})
	f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = "https://omni" }

	r := New(f.kind, Settings{Client: f.client, Events: f.events})

	_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	after := f.get()
	if got := conditions(after); got["Ready"] != "Unknown Pending: " || got["First"] != "" || after.Status.Endpoint != "https://omni" || len(f.events.All()) > 0 {
		t.Errorf("%v, endpoint %q, events %q", got, after.Status.Endpoint, f.events.All())
	}
}

// What was done before the process stopped is written.
func TestFinishedRunIsWrittenWhileStopping(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		stop()

		return Continue("Fine", "done"), nil
	}})

	r := New(f.kind, Settings{Client: f.client, Events: f.events})

	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}}); err != nil {
		t.Fatal(err)
	}

	if got := conditions(f.get())["Ready"]; got != "True Fine: done" {
		t.Error(got)
	}
}

func TestPhasesHaveADeadline(t *testing.T) {
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(ctx context.Context, _ *scope) (Outcome, error) {
		deadline, ok := ctx.Deadline()
		if !ok || time.Until(deadline) > time.Minute {
			t.Errorf("deadline %v, %v", deadline, ok)
		}

		return Continue("Fine", ""), nil
	}})

	r := New(f.kind, Settings{Client: f.client, Events: f.events, Timeout: time.Minute})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}}); err != nil {
		t.Fatal(err)
	}
}

// What an object says happens at some time is looked at then, whatever the phases found, and not
// earlier because of it.
func TestDue(t *testing.T) {
	for name, test := range map[string]struct {
		due  time.Duration
		last Outcome
		want time.Duration
	}{
		"nothing is due":              {0, Continue("Fine", "fine"), testInterval},
		"after the interval":          {testInterval + time.Second, Continue("Fine", "fine"), testInterval},
		"before the interval":         {time.Second, Continue("Fine", "fine"), time.Second},
		"before the interval, stalls": {time.Second, Stall("Denied", "no"), time.Second},
		"after the pause":             {time.Minute, Wait(time.Second, "NotYet", "soon"), time.Second},
		"before the pause":            {time.Millisecond, Wait(time.Second, "NotYet", "soon"), time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, connection(), phase("First", test.last, nil))
			f.kind.Due = func(*v1alpha1.OmniConnection) time.Duration { return test.due }

			if got, err := f.run(); err != nil || got.RequeueAfter != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestJitterTakesOffATenthAtMost(t *testing.T) {
	r := New(newFixture(t, connection()).kind, Settings{})

	for range 1000 {
		if got := r.settings.Jitter(100 * time.Second); got < 90*time.Second || got > 100*time.Second {
			t.Fatal(got)
		}
	}
}

// TestHasFailed tells a run whose phase ended with an error from the run after it.
func TestHasFailed(t *testing.T) {
	results := []error{nil, errors.New("away"), nil}
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		err := results[0]
		results = results[1:]

		return Stall("Refused", "no"), err
	}})

	var failed []bool

	f.kind.Report = func(_ context.Context, s *scope) { failed = append(failed, HasFailed(s.object.Status.Conditions)) }

	r := New(f.kind, Settings{Client: f.client, Events: f.events})

	for range 3 {
		_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	}

	if !slices.Equal(failed, []bool{false, true, false}) {
		t.Errorf("failed: %v", failed)
	}
}
