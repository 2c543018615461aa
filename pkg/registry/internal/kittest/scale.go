package kittest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// testScale: the scale of a set can always be read, and can be written if the size of its machine class is a number.
func (s *suite[T]) testScale(t *testing.T) {
	storage := s.plain(t)

	if s.Descriptor.Scale == nil {
		if storage.Scale != nil {
			t.Error("a scale subresource that nobody asked for")
		}

		return
	}

	v := s.verbs(t, storage)
	classOf := func(size intstr.IntOrString) v1alpha1.MachineSetMachines {
		return v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "large", Size: &size}}
	}
	sets := map[string]v1alpha1.MachineSetMachines{
		"sized":     classOf(intstr.FromInt32(3)),
		"unlimited": classOf(intstr.FromString("unlimited")),
		"listed": {Machines: []string{
			"30303031-3233-3435-3637-383930313233", "30303031-3233-3435-3637-383930313234",
		}},
	}

	for name, machines := range sets {
		obj := s.valid(name)
		*s.Descriptor.Scale.Machines(obj) = machines
		v.create(obj)
		v.updateStatus(name, func(obj T) {
			status := s.Descriptor.Scale.Status(obj)
			status.Replicas, status.Selector = 5, "set="+name
		})
	}

	s.testReadScale(t, v)
	s.testWriteScale(t, v)
	s.testWriteScaleWithoutVersion(t, v)
}

func (s *suite[T]) testReadScale(t *testing.T, v verbs[T]) {
	t.Helper()

	for name, want := range map[string]int32{"sized": 3, "unlimited": 5, "listed": 2} {
		got, err := v.storage.Scale.(rest.Getter).Get(s.request(t, "scale"), name, &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		scale := got.(*autoscalingv1.Scale)
		wanted := autoscalingv1.Scale{
			ObjectMeta: scale.ObjectMeta,
			Spec:       autoscalingv1.ScaleSpec{Replicas: want},
			Status:     autoscalingv1.ScaleStatus{Replicas: 5, Selector: "set=" + name},
		}

		if diff := cmp.Diff(&wanted, scale); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}

		if scale.Name != name || scale.UID == "" || scale.ResourceVersion == "" {
			t.Errorf("%s: metadata %+v", name, scale.ObjectMeta)
		}
	}
}

func (s *suite[T]) testWriteScale(t *testing.T, v verbs[T]) {
	t.Helper()

	tests := []struct {
		name     string
		replicas int32
		valid    bool
	}{
		{"sized", 4, true},
		{"sized", -1, false},
		{"unlimited", 6, false},
		{"unlimited", 5, true},
		{"listed", 3, false},
		{"listed", 2, true},
	}

	for _, test := range tests {
		generation := v.get(test.name).GetGeneration()
		scale, err := s.writeScale(t, v, test.name, test.replicas)

		if !test.valid {
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s to %d: got %v, want Invalid", test.name, test.replicas, err)
			}

			continue
		}

		if err != nil || scale.Spec.Replicas != test.replicas {
			t.Errorf("%s to %d: got %+v, %v", test.name, test.replicas, scale, err)
		}

		changed := v.get(test.name).GetGeneration() != generation
		if wanted := test.name == "sized"; changed != wanted {
			t.Errorf("%s to %d: new generation %t, want %t", test.name, test.replicas, changed, wanted)
		}
	}
}

// A scale may be written without a resource version, as that of a Deployment may: the version is an optional
// precondition.
func (s *suite[T]) testWriteScaleWithoutVersion(t *testing.T, v verbs[T]) {
	t.Helper()

	written := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "sized", Namespace: v.get("sized").GetNamespace()}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}

	_, _, err := v.storage.Scale.(rest.Updater).Update(s.request(t, "scale"), "sized", rest.DefaultUpdatedObjectInfo(written),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if got := s.Descriptor.Scale.Machines(v.get("sized")).MachineClass.Size.IntValue(); err != nil || got != 7 {
		t.Errorf("size %d, %v", got, err)
	}
}

func (s *suite[T]) writeScale(t *testing.T, v verbs[T], name string, replicas int32) (*autoscalingv1.Scale, error) {
	t.Helper()

	info := rest.DefaultUpdatedObjectInfo(nil, replicasOf(replicas))

	scale, _, err := v.storage.Scale.(rest.Updater).Update(s.request(t, "scale"), name, info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}

	return scale.(*autoscalingv1.Scale), nil
}

// replicasOf returns an update that sets the replicas of the stored scale, as a patch does.
func replicasOf(replicas int32) rest.TransformFunc {
	return func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		scale := old.(*autoscalingv1.Scale).DeepCopy()
		scale.Spec.Replicas = replicas

		return scale, nil
	}
}
