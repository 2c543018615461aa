package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Who owns which field, of every kind and subresource.

// Two managers disagree about a field: the second is refused, may force it, and the first has lost it then.
func TestEveryKindIsAppliedByManagers(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		field := "." + strings.ReplaceAll(strings.TrimPrefix(k.path, "/"), "/", ".")

		must(client.Apply(t.Context(), "a", k.object(t, "a"), metav1.ApplyOptions{FieldManager: "one"}))(t)
		// What is equal has two owners and no conflict.
		must(client.Apply(t.Context(), "a", k.object(t, "a"), metav1.ApplyOptions{FieldManager: "two"}))(t)

		other := k.object(t, "a")
		setPath(t, other, k.path, k.value)

		_, err := client.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "two"})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": `+field) {
			t.Errorf("without force: %v", err)
		}

		forced := must(client.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "two", Force: true}))(t)
		if forced.GetGeneration() != 2 || owns(t, forced, "one", "", field) || !owns(t, forced, "two", "", field) {
			t.Errorf("with force: generation %d, %v", forced.GetGeneration(), forced.GetManagedFields())
		}

		if got := valueAt(t, forced, k.path); got != k.value {
			t.Errorf("with force: %s is %s, want %s", k.path, got, k.value)
		}
	})
}

// Lists that are maps, sets, and maps have elements of several owners; an applier who leaves takes along
// only its own.
func TestElementsHaveOwners(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		if k.owned[0] == "" {
			t.Log("has no list or map but of scalars that belong together")

			return
		}

		client := k.admin(t, namespace)
		apply := func(manager string, shares ...string) *unstructured.Unstructured {
			object := k.object(t, "a")
			for _, share := range shares {
				mergeSpec(t, object, share)
			}

			return must(client.Apply(t.Context(), "a", object, metav1.ApplyOptions{FieldManager: manager}))(t)
		}

		apply("one", k.shared[0])

		both := apply("two", k.shared[1])
		for i, manager := range []string{"one", "two"} {
			if !owns(t, both, manager, "", k.owned[i]) || owns(t, both, manager, "", k.owned[1-i]) {
				t.Errorf("%s does not own %s alone: %v", manager, k.owned[i], both.GetManagedFields())
			}
		}

		// The second applies without its element: the first's is still there, at the same place.
		left := apply("two")
		if !owns(t, left, "one", "", k.owned[0]) || owns(t, left, "two", "", k.owned[1]) {
			t.Errorf("after two left: %v", left.GetManagedFields())
		}

		text := must(json.Marshal(left.Object["spec"]))(t)
		if !strings.Contains(string(text), `one"`) || strings.Contains(string(text), `two"`) {
			t.Errorf("after two left: %s", text)
		}
	})
}

// A condition of a manager's own lives next to the controller's, and an apply of the status touches no spec.
func TestEveryStatusIsAppliedByManagers(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		must(client.Create(t.Context(), k.object(t, "a"), metav1.CreateOptions{}))(t)

		status := func(manager, condition, value string, force bool) (*unstructured.Unstructured, error) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": k.kind,
				"metadata": map[string]any{"name": "a", "labels": map[string]any{"hijack": "yes"}},
				"status": map[string]any{"conditions": []any{map[string]any{
					"type": condition, "status": value, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}}},
			}}

			return client.Apply(t.Context(), "a", object, metav1.ApplyOptions{FieldManager: manager, Force: force}, "status")
		}

		must(status("one", "Probe", "True", false))(t)
		must(status("two", "Other", "True", false))(t)

		if _, err := status("two", "Probe", "False", false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `.status.conditions[type="Probe"].status`) {
			t.Errorf("another's condition: %v", err)
		}

		forced := must(status("two", "Probe", "False", true))(t)
		if forced.GetGeneration() != 1 || len(forced.GetLabels()) != 0 {
			t.Errorf("metadata %v", forced.Object["metadata"])
		}

		if !owns(t, forced, "two", "status", `.status.conditions[type="Probe"].status`) {
			t.Errorf("owners %v", forced.GetManagedFields())
		}

		// Those of the controller are still there: Ready and others, or Ready alone of a policy that is in force.
		fewest := 3
		if k.kind == "OmniRolloutPolicy" {
			fewest = 2
		}

		conditions, _, err := unstructured.NestedSlice(forced.Object, "status", "conditions")
		if err != nil || len(conditions) < fewest {
			t.Errorf("conditions %v, %v", conditions, err)
		}
	})
}

// The size that a scaler applies is a field of the object behind, with the scaler as owner.
func TestScaleIsAppliedByManagers(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		if !k.scales() {
			_, err := k.admin(t, namespace).Get(t.Context(), "a", metav1.GetOptions{}, "scale")
			if !apierrors.IsNotFound(err) {
				t.Errorf("has a scale: %v", err)
			}

			return
		}

		client := k.admin(t, namespace)
		must(client.Apply(t.Context(), "a", k.object(t, "a"), metav1.ApplyOptions{FieldManager: "one"}))(t)

		if _, err := applyScale(t, client, 4, false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `.spec.replicas`) {
			t.Errorf("without force: %v", err)
		}

		must(applyScale(t, client, 4, true))(t)

		scaled := must(client.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		if size, _, _ := unstructured.NestedInt64(scaled.Object, "spec", "machineClass", "size"); size != 4 || scaled.GetGeneration() != 2 {
			t.Errorf("size %d, generation %d", size, scaled.GetGeneration())
		}

		if owns(t, scaled, "one", "", ".spec.machineClass.size") || !owns(t, scaled, "scaler", "scale", ".spec.machineClass.size") {
			t.Errorf("owners %v", scaled.GetManagedFields())
		}

		// Now it is the first who has to leave the size to the scaler.
		if _, err := client.Apply(t.Context(), "a", k.object(t, "a"), metav1.ApplyOptions{FieldManager: "one"}); !apierrors.IsConflict(err) ||
			!strings.Contains(err.Error(), `conflict with "scaler" with subresource "scale"`) {
			t.Errorf("the first again: %v", err)
		}
	})
}

func applyScale(t *testing.T, client dynamic.ResourceInterface, replicas int64, force bool) (*unstructured.Unstructured, error) {
	t.Helper()

	return client.Apply(t.Context(), "a", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": replicas},
	}}, metav1.ApplyOptions{FieldManager: "scaler", Force: force}, "scale")
}

// owns reports whether the applier owns the field.
func owns(t *testing.T, object *unstructured.Unstructured, manager, subresource, field string) bool {
	t.Helper()

	for _, entry := range object.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != subresource || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}

		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			t.Fatal(err)
		}

		var paths []string

		set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })

		return slices.Contains(paths, field)
	}

	return false
}

// setPath sets the value, in JSON, at the path of a JSON patch.
func setPath(t *testing.T, object *unstructured.Unstructured, path, value string) {
	t.Helper()

	var decoded any
	if err := json.Unmarshal([]byte(value), &decoded); err != nil {
		t.Fatal(err)
	}

	if err := unstructured.SetNestedField(object.Object, decoded, strings.Split(strings.TrimPrefix(path, "/"), "/")...); err != nil {
		t.Fatal(err)
	}
}

// valueAt is the value, in JSON, at the path of a JSON patch.
func valueAt(t *testing.T, object *unstructured.Unstructured, path string) string {
	t.Helper()

	value, _, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(strings.TrimPrefix(path, "/"), "/")...)
	if err != nil {
		t.Fatal(err)
	}

	return string(must(json.Marshal(value))(t))
}

// mergeSpec merges more fields, in JSON, into the spec.
func mergeSpec(t *testing.T, object *unstructured.Unstructured, more string) {
	t.Helper()

	var fields map[string]any
	if err := json.Unmarshal([]byte(more), &fields); err != nil {
		t.Fatal(err)
	}

	spec := object.Object["spec"].(map[string]any)

	for name, value := range fields {
		inner, nested := value.(map[string]any)
		current, there := spec[name].(map[string]any)

		if !nested || !there {
			spec[name] = value

			continue
		}

		maps.Copy(current, inner)
	}
}

// The helpers of these tests decide what they test.
func TestMergeOfSpecs(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": map[string]any{"b": "c"}}}}
	mergeSpec(t, object, `{"a":{"d":"e"},"f":["g"]}`)
	setPath(t, object, "/spec/a/b", `"z"`)

	want := map[string]any{"spec": map[string]any{"a": map[string]any{"b": "z", "d": "e"}, "f": []any{"g"}}}
	if diff := cmp.Diff(want, object.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if got := mergeOf("/spec/a/b", "1"); got != `{"spec":{"a":{"b":1}}}` {
		t.Errorf("merge patch %s", got)
	}
}
