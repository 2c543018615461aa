package migrate

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// refusedWorkers is an old object that this version refuses.
func refusedWorkers(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()

	old := stored(t, "OmniWorkers", "", `{clusterRef: {name: one}, ofAnotherVersion: 1}`)
	old.SetName(name)
	old.Object["status"] = map[string]any{} // it was not Ready: nothing waits for it

	return old
}

// workersNamed are old objects.
func workersNamed(t *testing.T, names ...string) []*unstructured.Unstructured {
	t.Helper()

	var all []*unstructured.Unstructured

	for _, name := range names {
		one := stored(t, "OmniWorkers", "", `{clusterRef: {name: c}, machineClass: {name: m, size: 1}}`)
		one.SetName(name)
		all = append(all, one)
	}

	return all
}

// What a run made, or found, before it was stopped is in the backup: what a user deletes after that stays deleted.
func TestAStoppedImportForgetsNothing(t *testing.T) {
	objects := fakeHub(workersNamed(t, "b")...)
	m := migrationOn(objects, workersNamed(t, "a", "b", "c", "d")...)
	m.options.Backup = filepath.Join(t.TempDir(), "backup.json")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	objects.PrependReactor("create", "*", func(action ktesting.Action) (bool, runtime.Object, error) {
		creation, _ := action.(ktesting.CreateAction)
		if made, _ := creation.GetObject().(*unstructured.Unstructured); made.GetName() != "c" {
			return false, nil, nil
		}

		stop()

		return true, nil, ctx.Err()
	})

	if err := m.importAll(ctx); err == nil {
		t.Error("a run that was stopped succeeded")
	}

	saved, err := readBackup(t.Context(), m.options.Backup)
	if want := []string{"OmniWorkers team-a/a", "OmniWorkers team-a/b"}; err != nil || !slices.Equal(saved.Imported, want) {
		t.Errorf("imported %q, %v, want %q", saved.Imported, err, want)
	}
}

// An object that this version cannot convert does not end the migration: made by hand, it is imported; without it, the others
// are verified, and the run fails.
func TestOneObjectCannotBeConverted(t *testing.T) {
	for name, byHand := range map[string]bool{"made by hand": true, "missing": false} {
		t.Run(name, func(t *testing.T) {
			refused, good := refusedWorkers(t, "refused"), workersNamed(t, "good")[0]
			good.Object["status"] = map[string]any{}

			objects := fakeHub()
			if byHand {
				of, _ := kindNamed("OmniWorkers")
				if _, err := objects.Resource(of.resource()).Namespace("team-a").Create(t.Context(), workersNamed(t, "refused")[0], metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}

			m := migrationOn(objects, refused, good)
			m.options.Backup = filepath.Join(t.TempDir(), "backup.json")

			if c := m.converted()[0]; c.Object != nil {
				t.Fatalf("%s is converted", c.ID())
			}

			if err := m.importAll(t.Context()); err != nil {
				t.Fatalf("import: %v", err)
			}

			saved, err := readBackup(t.Context(), m.options.Backup)
			if err != nil || slices.Contains(saved.Imported, "OmniWorkers team-a/refused") != byHand || !slices.Contains(saved.Imported, "OmniWorkers team-a/good") {
				t.Errorf("imported: %v, %v", saved.Imported, err)
			}

			err = m.verify(t.Context())
			if len(m.report.Results) != 2 || (err == nil) != byHand || err != nil && !strings.Contains(err.Error(), "OmniWorkers team-a/refused cannot be imported") {
				t.Errorf("%+v, %v", m.report.Results, err)
			}

			if missing := m.report.Results[0]; !byHand && (missing.Outcome != Missing || strings.Contains(missing.Text, "deleted")) {
				t.Errorf("%+v", missing)
			}
		})
	}
}

// A cluster is not taken over by a plan that was made without one of its documents.
func TestNoTakeoverWithoutADocument(t *testing.T) {
	obj := stored(t, "OmniCluster", "", cluster+", changePolicy: Observe}")
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "token"})
	obj.Object["status"] = map[string]any{"lastHandledReconcileAt": "token", "conditions": []any{
		map[string]any{"type": v1alpha1.ConditionPlanned, "status": "True", "observedGeneration": int64(3)},
	}}
	writtenBy(obj, "changePolicy", fieldManager)

	for name, test := range map[string]struct {
		imported []string
		waits    bool
	}{
		"it was never made":   {nil, true},
		"its user deleted it": {[]string{"OmniWorkers team-a/refused"}, false},
	} {
		objects := fakeHub(obj)
		m := migrationOn(objects, stored(t, "OmniCluster", "", cluster+"}"), refusedWorkers(t, "refused"))
		m.backup.Imported = test.imported
		all := m.converted()

		if _, err := (&verification{m, all, "token"}).verifyCluster(t.Context(), all[1]); err != nil {
			t.Fatal(err)
		}

		if took := writes(objects, "changePolicy"); took == test.waits {
			t.Errorf("%s: taken over: %t", name, took)
		}
	}
}

// A cluster that an earlier version has imported, and this one cannot convert, is its user's to take over.
func TestTakeoverOfWhatCannotBeConverted(t *testing.T) {
	obj := stored(t, "OmniCluster", "", cluster+", changePolicy: Observe, deletePolicy: {orphan: true}}")
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:changePolicy":{},"f:deletePolicy":{"f:orphan":{}}}}`)}})

	m := migrationOn(fakeHub(obj), stored(t, "OmniCluster", "", cluster+", ofAnotherVersion: 1}"))
	c := m.converted()[0]

	v, err := (&verification{m, nil, "token"}).verifyCluster(t.Context(), c)
	if err != nil || !v.over || v.outcome != Observed || !strings.Contains(v.text, "ofAnotherVersion") {
		t.Errorf("%+v, %v", v, err)
	}
}
