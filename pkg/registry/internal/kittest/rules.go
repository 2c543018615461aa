package kittest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// seeded is the status of every new object.
func seeded() v1alpha1.ReconcileStatus {
	const message = "no controller has looked at this object yet"

	return v1alpha1.ReconcileStatus{
		ObservedGeneration: -1,
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "Unknown", Reason: "Pending", Message: message},
			{Type: "Reconciling", Status: "True", Reason: "Pending", Message: message},
		},
	}
}

func expectSeeded(t *testing.T, got *v1alpha1.ReconcileStatus) {
	t.Helper()

	if diff := cmp.Diff(seeded(), *got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	for _, condition := range got.Conditions {
		if condition.LastTransitionTime.IsZero() {
			t.Errorf("condition %s has no time", condition.Type)
		}
	}
}

// testCreate: a client's status and generation are dropped, ours are set.
func (s *suite[T]) testCreate(t *testing.T) {
	v := s.verbs(t, s.plain(t))

	obj := s.valid("foo")
	obj.SetGeneration(7)
	*obj.GetReconcileStatus() = v1alpha1.ReconcileStatus{
		ObservedGeneration: 7,
		Conditions:         []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Forged"}},
	}

	created := v.create(obj)
	if created.GetGeneration() != 1 {
		t.Errorf("generation %d, want 1", created.GetGeneration())
	}

	expectSeeded(t, created.GetReconcileStatus())
}

// testGeneration: only a changed spec makes a new generation.
func (s *suite[T]) testGeneration(t *testing.T) {
	v := s.verbs(t, s.plain(t))
	v.create(s.valid("foo"))

	nothing := func(T) {}
	steps := []struct {
		name   string
		change func(T)
		want   int64
	}{
		{"no change", nothing, 1},
		{"labels", func(obj T) { obj.SetLabels(map[string]string{"a": "b"}) }, 1},
		{"annotations", func(obj T) { obj.SetAnnotations(map[string]string{"a": "b"}) }, 1},
		{"finalizers", func(obj T) { obj.SetFinalizers([]string{"example.com/keep"}) }, 1},
		{"status through the main resource", func(obj T) { obj.GetReconcileStatus().ObservedGeneration = 1 }, 1},
		{"generation itself", func(obj T) { obj.SetGeneration(9) }, 1},
		{"spec", s.Change, 2},
		{"same spec again", nothing, 2},
	}

	for _, step := range steps {
		if got := v.update("foo", step.change).GetGeneration(); got != step.want {
			t.Errorf("%s: generation %d, want %d", step.name, got, step.want)
		}
	}

	if s.EmptyList != nil {
		if got := v.update("foo", s.EmptyList).GetGeneration(); got != 3 {
			t.Errorf("unset list made empty: generation %d, want 3", got)
		}
	}

	expectSeeded(t, v.get("foo").GetReconcileStatus())
}

// testDeletion: the beginning of a deletion increases the generation once; a dry run and a second deletion do not.
func (s *suite[T]) testDeletion(t *testing.T) {
	v := s.verbs(t, s.plain(t))

	kept := s.valid("foo")
	kept.SetFinalizers([]string{"example.com/keep"})
	v.create(kept)

	steps := []struct {
		name   string
		delete func() error
		want   int64
	}{
		{"dry run", func() error { return v.delete("foo", metav1.DryRunAll) }, 1},
		{"first", func() error { return v.delete("foo") }, 2},
		{"again", func() error { return v.delete("foo") }, 2},
		{"collection", v.deleteCollection, 2},
	}

	for _, step := range steps {
		if err := step.delete(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}

		if got := v.get("foo").GetGeneration(); got != step.want {
			t.Errorf("%s: generation %d, want %d", step.name, got, step.want)
		}
	}

	if got := v.update("foo", func(obj T) { obj.SetFinalizers(nil) }); len(got.GetFinalizers()) != 0 {
		t.Errorf("finalizers %q", got.GetFinalizers())
	}

	if _, err := v.storage.Main.Get(s.request(t, ""), "foo", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after the last finalizer: %v", err)
	}
}

// testRefusedApply: an apply that is refused is answered with 400 if the object exists, so that nobody answers with a deletion; see
// refuseApply of the kit. Another write, and an apply of a new object, is answered with 422.
func (s *suite[T]) testRefusedApply(t *testing.T) {
	v := s.verbs(t, s.plain(t))
	v.create(s.valid("foo"))

	bad := v.get("foo").DeepCopyObject().(T)
	s.BadChange(bad)

	invalid := s.Invalid()
	invalid.SetName("new")
	invalid.SetNamespace(bad.GetNamespace())

	for _, test := range []struct {
		name  string
		obj   T
		apply bool
		as    func(error) bool
	}{
		{"apply", bad, true, apierrors.IsBadRequest},
		{"another write", bad, false, apierrors.IsInvalid},
		{"apply of a new object", invalid, true, apierrors.IsInvalid},
	} {
		_, _, err := v.storage.Main.Update(s.request(t, ""), test.obj.GetName(), rest.DefaultUpdatedObjectInfo(test.obj),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, test.apply, &metav1.UpdateOptions{})
		if !test.as(err) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// testStatus: /status writes the status only, and refuses an observedGeneration that does not exist.
func (s *suite[T]) testStatus(t *testing.T) {
	v := s.verbs(t, s.plain(t))
	before := v.create(s.valid("foo"))

	after := v.updateStatus("foo", func(obj T) {
		s.Change(obj)
		obj.SetLabels(map[string]string{"a": "b"})
		obj.SetAnnotations(map[string]string{"a": "b"})
		obj.SetFinalizers([]string{"example.com/keep"})
		obj.SetGeneration(5)
		obj.GetReconcileStatus().ObservedGeneration = 1
	})

	if after.GetReconcileStatus().ObservedGeneration != 1 {
		t.Errorf("observedGeneration %d, want 1", after.GetReconcileStatus().ObservedGeneration)
	}

	after.GetReconcileStatus().ObservedGeneration = -1
	after.SetResourceVersion(before.GetResourceVersion())

	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the status subresource changed more than the status (-before +after):\n%s", diff)
	}

	_, err := v.tryWrite(v.storage.Status, "status", "foo", func(obj T) { obj.GetReconcileStatus().ObservedGeneration = 2 })
	if !apierrors.IsInvalid(err) {
		t.Errorf("observedGeneration beyond the generation: got %v, want Invalid", err)
	}

	wiped := v.updateStatus("foo", func(obj T) { *obj.GetReconcileStatus() = v1alpha1.ReconcileStatus{ObservedGeneration: 1} })
	expectSeeded(t, wiped.GetReconcileStatus())
}

// testResetFields: an apply owns only what it can write.
func (s *suite[T]) testResetFields(t *testing.T) {
	storage := s.plain(t)

	tests := []struct {
		name string
		got  map[fieldpath.APIVersion]*fieldpath.Set
		want string
	}{
		{"main", storage.Main.GetResetFields(), "status"},
		{"status", storage.Status.GetResetFields(), "metadata\nspec"},
	}
	for _, test := range tests {
		set, ok := test.got["omni.texashpc.com/v1alpha1"]
		if !ok || len(test.got) != 1 {
			t.Errorf("%s: versions %v", test.name, test.got)

			continue
		}

		if got := leaves(set); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
