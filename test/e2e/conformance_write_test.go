package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// What clients write, of every kind, through the aggregator.

// Every type of patch that kube-apiserver knows works. What it does not know is refused as such.
func TestEveryKindCanBePatched(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		must(client.Create(t.Context(), k.object(t, "p"), metav1.CreateOptions{}))(t)

		merge, before := []byte(mergeOf(k.path, k.value)), valueAt(t, k.object(t, "p"), k.path)
		label := func(value string) []byte {
			return []byte(`{"metadata":{"labels":{"by":"` + value + `"}}}`)
		}

		for _, tc := range []struct {
			name       string
			kind       types.PatchType
			patch      []byte
			generation int64
			value      string // at the path afterwards
		}{
			{"JSON patch", types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":%q,"value":%s}]`, k.path, k.value), 2, k.value},
			{"merge patch that changes nothing", types.MergePatchType, merge, 2, k.value},
			{"strategic merge patch that changes nothing", types.StrategicMergePatchType, merge, 2, k.value},
			{"merge patch of metadata", types.MergePatchType, label("merge"), 2, k.value},
			{"strategic merge patch of metadata", types.StrategicMergePatchType, label("strategic"), 2, k.value},
			{"merge patch back", types.MergePatchType, []byte(`{"spec":` + k.spec + `}`), 3, before},
			{"strategic merge patch", types.StrategicMergePatchType, merge, 4, k.value},
		} {
			patched, err := client.Patch(t.Context(), "p", tc.kind, tc.patch, metav1.PatchOptions{})
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)

				continue
			}

			if value := valueAt(t, patched, k.path); patched.GetGeneration() != tc.generation || value != tc.value {
				t.Errorf("%s: generation %d, %s in %s, want %d and %s", tc.name, patched.GetGeneration(), value, k.path, tc.generation, tc.value)
			}
		}

		if stored := must(client.Get(t.Context(), "p", metav1.GetOptions{}))(t); valueAt(t, stored, k.path) != k.value {
			t.Errorf("stored %v, want %s in %s", stored.Object["spec"], k.value, k.path)
		}

		// The test of a JSON patch that fails, a patch of nothing, and a type nobody knows.
		test := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/name","value":"q"},{"op":"remove","path":"/spec"}]`)
		if _, err := client.Patch(t.Context(), "p", types.JSONPatchType, test, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("failed test: %v", err)
		}

		if _, err := client.Patch(t.Context(), "absent", types.MergePatchType, merge, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("absent: %v", err)
		}

		if _, err := client.Patch(t.Context(), "p", "application/xml", merge, metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
			t.Errorf("XML: %v", err)
		}
	})
}

// mergeOf is the merge patch that sets the value at the path of a JSON patch.
func mergeOf(path, value string) string {
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")

	return `{"` + strings.Join(steps, `":{"`) + `":` + value + strings.Repeat("}", len(steps))
}

// A dry run answers as the real request, refusals included, and stores nothing.
func TestEveryKindCanBeTried(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		merge := []byte(mergeOf(k.path, k.value))

		tried := must(client.Create(t.Context(), k.object(t, "new"), metav1.CreateOptions{DryRun: dryRun}))(t)
		if tried.GetUID() == "" {
			t.Error("a tried object has no UID")
		}

		if _, err := client.Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("was stored: %v", err)
		}

		created := must(client.Create(t.Context(), k.labelled(t, "old", "dry", "run"), metav1.CreateOptions{}))(t)

		for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
			patched := must(client.Patch(t.Context(), "old", kind, merge, metav1.PatchOptions{DryRun: dryRun}))(t)
			if value := valueAt(t, patched, k.path); patched.GetGeneration() != 2 || value != k.value {
				t.Errorf("%s: generation %d and %s in the answer, want 2 and %s", kind, patched.GetGeneration(), value, k.value)
			}
		}

		applied := k.object(t, "old")
		applied.SetLabels(map[string]string{"applied": "yes"})
		must(client.Apply(t.Context(), "old", applied, metav1.ApplyOptions{FieldManager: "dry", DryRun: dryRun}))(t)

		// The controller may have written in between.
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			update := must(client.Get(t.Context(), "old", metav1.GetOptions{}))(t)
			update.SetLabels(nil)

			_, err := client.Update(t.Context(), update, metav1.UpdateOptions{DryRun: dryRun})

			return err
		}); err != nil {
			t.Error(err)
		}

		if err := client.Delete(t.Context(), "old", metav1.DeleteOptions{DryRun: dryRun}); err != nil {
			t.Error(err)
		}

		if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}

		after := must(client.Get(t.Context(), "old", metav1.GetOptions{}))(t)
		if after.GetUID() != created.GetUID() || after.GetGeneration() != 1 || after.GetDeletionTimestamp() != nil ||
			!cmp.Equal(after.GetLabels(), map[string]string{"dry": "run"}) {
			t.Errorf("stored %v", after.Object["metadata"])
		}
	})
}

// Unknown fields are errors, warnings or nothing, as the client asks.
func TestEveryKindIsValidatedByField(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		var heard warnings

		config := stack.RESTConfig()
		config.WarningHandler = &heard
		client := dynamicFor(t, config).Resource(k.gvr()).Namespace(namespace)

		wrong := k.object(t, "w")
		if err := unstructured.SetNestedField(wrong.Object, "x", "spec", "nonsense"); err != nil {
			t.Fatal(err)
		}

		must(client.Create(t.Context(), k.object(t, "there"), metav1.CreateOptions{}))(t)

		patch := []byte(`{"spec":{"nonsense":"x"}}`)
		requests := map[string]func(validation string) error{
			"create": func(validation string) error {
				_, err := client.Create(t.Context(), wrong, metav1.CreateOptions{FieldValidation: validation, DryRun: dryRun})

				return err
			},
			"patch": func(validation string) error {
				_, err := client.Patch(t.Context(), "there", types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: validation})

				return err
			},
			"update": func(validation string) error {
				return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
					object := must(client.Get(t.Context(), "there", metav1.GetOptions{}))(t)
					object.Object["spec"].(map[string]any)["nonsense"] = "x"
					_, err := client.Update(t.Context(), object, metav1.UpdateOptions{FieldValidation: validation, DryRun: dryRun})

					return err
				})
			},
		}

		for name, request := range requests {
			if err := request(metav1.FieldValidationStrict); !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "nonsense") {
				t.Errorf("%s, strictly: %v", name, err)
			}

			heard = nil
			if err := request(metav1.FieldValidationWarn); err != nil || !strings.Contains(strings.Join(heard, "\n"), `unknown field "spec.nonsense"`) {
				t.Errorf("%s, with warnings: %v, heard %q", name, err, heard)
			}

			heard = nil
			if err := request(metav1.FieldValidationIgnore); err != nil || strings.Contains(strings.Join(heard, "\n"), "nonsense") {
				t.Errorf("%s, without: %v, heard %q", name, err, heard)
			}
		}

		// An apply has to know every field: nobody could own an unknown one.
		if _, err := client.Apply(t.Context(), "w", wrong, metav1.ApplyOptions{FieldManager: "one"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("apply: %v", err)
		}
	})
}

// warnings collects what the server warns of.
type warnings []string

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

var _ rest.WarningHandler = &warnings{}

// Nobody overwrites or deletes what they have not seen, if they say what they have seen.
func TestEveryKindHasPreconditions(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)
		created := must(client.Create(t.Context(), k.object(t, "c"), metav1.CreateOptions{}))(t)
		stale, uid := created.GetResourceVersion(), created.GetUID()

		must(client.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))(t)

		other := types.UID("00000000-0000-4000-8000-000000000000")
		unseen, renamed := k.object(t, "c"), k.object(t, "absent")
		renamed.SetResourceVersion(stale)

		for _, tc := range []struct {
			name    string
			request func() error
			refused func(error) bool
		}{
			{"create again", createOf(t, client, k.object(t, "c")), apierrors.IsAlreadyExists},
			{"update of an older state", updateOf(t, client, created), apierrors.IsConflict},
			{"update of what was not read", updateOf(t, client, unseen), apierrors.IsInvalid},
			{"update of what is not there", updateOf(t, client, renamed), apierrors.IsNotFound},
			{"patch of an older state", patchOf(t, client, `{"metadata":{"resourceVersion":"`+stale+`"}}`), apierrors.IsConflict},
			{"patch of another object of the name", patchOf(t, client, `{"metadata":{"uid":"`+string(other)+`"}}`), apierrors.IsInvalid},
			{"delete of another object of the name", deleteOf(t, client, metav1.Preconditions{UID: &other}), apierrors.IsConflict},
			{"delete of an older state", deleteOf(t, client, metav1.Preconditions{UID: &uid, ResourceVersion: &stale}), apierrors.IsConflict},
			{"delete of the object", deleteOf(t, client, metav1.Preconditions{UID: &uid}), nil},
		} {
			err := tc.request()
			if tc.refused == nil && err != nil || tc.refused != nil && !tc.refused(err) {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	})
}

func createOf(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) func() error {
	return func() error {
		_, err := client.Create(t.Context(), object, metav1.CreateOptions{})

		return err
	}
}

func updateOf(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) func() error {
	return func() error {
		_, err := client.Update(t.Context(), object, metav1.UpdateOptions{})

		return err
	}
}

func patchOf(t *testing.T, client dynamic.ResourceInterface, patch string) func() error {
	return func() error {
		_, err := client.Patch(t.Context(), "c", types.MergePatchType, []byte(patch), metav1.PatchOptions{})

		return err
	}
}

func deleteOf(t *testing.T, client dynamic.ResourceInterface, conditions metav1.Preconditions) func() error {
	return func() error {
		return client.Delete(t.Context(), "c", metav1.DeleteOptions{Preconditions: &conditions})
	}
}
