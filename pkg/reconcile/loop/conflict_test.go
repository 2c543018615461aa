package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
