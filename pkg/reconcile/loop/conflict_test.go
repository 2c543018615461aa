package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// raced is what a phase returns when somebody else was quicker at another object.
func raced() map[string]error {
	return map[string]error{
		"changed":      fmt.Errorf("hold Secret: %w", apierrors.NewConflict(corev1.Resource("secrets"), "access", errors.New("the object has been modified"))),
		"made already": fmt.Errorf("create Secret: %w", apierrors.NewAlreadyExists(corev1.Resource("secrets"), "access")),
	}
}

// Many objects write the same Secret at the same time: who loses has no fault.
func TestConflictOfAPhaseIsNotShown(t *testing.T) {
	for name, conflict := range raced() {
		t.Run(name, func(t *testing.T) {
			lost := 0
			f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
				if lost++; lost == 1 {
					return Outcome{}, conflict
				}

				return Continue("Fine", ""), nil
			}})

			got, err := f.run()
			if err != nil || got.RequeueAfter != conflictPause {
				t.Fatal(got, err)
			}

			if events := f.events.New(); f.writes.Status != 0 || events != nil {
				t.Errorf("%d status writes, events %q", f.writes.Status, events)
			}

			if _, err := f.run(); err != nil || conditions(f.get())["Ready"] != "True Fine: " {
				t.Error(conditions(f.get()), err)
			}
		})
	}
}

// A conflict that never ends has another cause, which somebody has to see. After a
// success the patience is there again.
func TestConflictWithoutEndIsShown(t *testing.T) {
	conflict, blessed := raced()["changed"], false
	f := newFixture(t, connection(), Phase[*scope]{Condition: "First", Run: func(context.Context, *scope) (Outcome, error) {
		if blessed {
			return Continue("Fine", ""), nil
		}

		return Outcome{}, conflict
	}})

	r := New(f.kind, Settings{Client: f.client, Events: f.events})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}}

	for range 2 {
		for i := range quietConflicts {
			if got, err := r.Reconcile(t.Context(), request); err != nil || got.RequeueAfter != conflictPause {
				t.Fatal(i, got, err)
			}
		}

		for range 2 {
			if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, conflict) {
				t.Fatal(err)
			}
		}

		if got, want := conditions(f.get())["Ready"], "False Error: "+conflict.Error(); got != want {
			t.Errorf("Ready is %q, want %q", got, want)
		}

		blessed = true

		if _, err := r.Reconcile(t.Context(), request); err != nil || conditions(f.get())["Ready"] != "True Fine: " {
			t.Fatal(conditions(f.get()), err)
		}

		blessed = false
	}
}

// TestStatusWritten tells of a change in the status once: not of one whose write had a conflict, and not again in a later run.
func TestStatusWritten(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Continue("Fine", ""), nil))
	f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = "https://new.example.com" }

	var told []string

	f.kind.StatusWritten = func(before, after *v1alpha1.OmniConnection) {
		told = append(told, before.Status.Endpoint+" -> "+after.Status.Endpoint)
	}

	f.before = func(c client.Client) {
		f.before = nil

		other := f.get()
		other.Labels = map[string]string{"somebody": "else"}

		if err := c.Update(t.Context(), other); err != nil {
			t.Error(err)
		}
	}

	for i, want := range []int{0, 1, 1} {
		if _, err := f.run(); err != nil || len(told) != want {
			t.Errorf("run %d: %v %q", i+1, err, told)
		}
	}

	if len(told) != 1 || told[0] != " -> https://new.example.com" {
		t.Errorf("told %q", told)
	}
}

// TestStatusWrittenWithoutAnAnswer tells, once, of what a status write whose answer was lost has changed: of Ready, too.
func TestStatusWrittenWithoutAnAnswer(t *testing.T) {
	lost := apierrors.NewTimeoutError("etcdserver: request timed out", 0)

	for name, test := range map[string]struct {
		err  error
		took bool // although it failed
		told []int
	}{
		"the answer is lost":           {lost, true, []int{0, 1, 1}},
		"the connection breaks before": {errors.New("http2: client connection lost"), false, []int{0, 1, 1}},
		"it is refused":                {apierrors.NewForbidden(schema.GroupResource{}, "main", errors.New("no")), false, []int{0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, connection(), phase("First", Continue("Fine", "done"), nil))
			f.kind.Report = func(_ context.Context, s *scope) { s.object.Status.Endpoint = "https://new.example.com" }

			var told []string

			f.kind.StatusWritten = func(before, after *v1alpha1.OmniConnection) {
				told = append(told, before.Status.Endpoint+" -> "+after.Status.Endpoint)
			}
			f.answer = func(write func() error) error {
				f.answer = nil

				if test.took {
					if err := write(); err != nil {
						t.Error(err)
					}
				}

				return test.err
			}

			r := New(f.kind, Settings{Client: f.client, Events: f.events})

			for i, want := range test.told {
				_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
				if failed := err != nil; failed != (i == 0) || len(told) != want {
					t.Errorf("run %d: %v %q", i+1, err, told)
				}
			}

			if len(told) != 1 || told[0] != " -> https://new.example.com" {
				t.Errorf("told %q", told)
			}

			if events := f.events.All(); len(events) != 1 || events[0] != "Normal Fine done" {
				t.Errorf("events %q", events)
			}

			if len(r.untold.kept) != 0 {
				t.Errorf("kept %v", r.untold.kept)
			}
		})
	}
}

// An object of the same name that was made since is told of by itself, and nothing is kept of one that is gone.
func TestWithoutAnAnswerAndGone(t *testing.T) {
	u, object := newUntold[*v1alpha1.OmniConnection](), connection()
	object.UID = "first"
	u.keep(object)

	another := connection()
	another.UID = "second"

	if told, differs := u.find(another); differs || told != another {
		t.Error("the former object's state is told as that of another one")
	}

	f := newFixture(t, connection(), phase("First", Continue("Fine", "done"), nil))
	r := New(f.kind, Settings{Client: f.client, Events: f.events})
	r.untold.keep(object)

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}); err != nil || len(r.untold.kept) != 0 {
		t.Errorf("%v, kept %v", err, r.untold.kept)
	}
}

// While the API is away, all objects of a fleet may have something new: what is kept of them is bounded.
func TestWithoutAnAnswerIsBounded(t *testing.T) {
	u := newUntold[*v1alpha1.OmniConnection]()

	for i := range 2 * maxUntold {
		object := connection()
		object.Name = fmt.Sprint(i % (maxUntold + 1))
		u.keep(object)
	}

	if len(u.kept) != maxUntold {
		t.Errorf("%d are kept", len(u.kept))
	}
}
