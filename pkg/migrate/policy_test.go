package migrate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// operatorWith is the old operator's Deployment.
func operatorWith(replicas int64) []unstructured.Unstructured {
	made := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	made.SetKind("Deployment")
	made.SetName("operator")

	return []unstructured.Unstructured{made}
}

// policed is an object with a deletion policy, of which the field managers have written parts.
func policed(kind string, policy any, writers map[string]string) unstructured.Unstructured {
	made := unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": map[string]any{policyField(kind): policy}}}
	made.SetName("one")
	made.SetUID("one")

	var entries []metav1.ManagedFieldsEntry
	for manager, fields := range writers {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":` + fields + `}`)})
	}

	made.SetManagedFields(entries)

	return made
}

// The policies that users have set stay in the backup, whether the old operator runs again or not: those that the command has
// set in their place do not get into it. Undo restores the same ones.
func TestPoliciesInTheBackup(t *testing.T) {
	const (
		us     = fieldManager
		orphan = `{"f:deletePolicy":{"f:orphan":{}}}`
		both   = `{"f:deletePolicy":{"f:orphan":{},"f:destroyMachines":{}}}`
		other  = `{"f:deletePolicy":{"f:destroyMachines":{}}}`
		policy = `{"f:deletionPolicy":{}}`
	)

	type fields = map[string]any

	destroy, let := fields{"destroyMachines": true}, fields{"orphan": true}

	for name, test := range map[string]struct {
		kind            string
		old, live, want any
		writers         map[string]string
	}{
		"ours":                            {"OmniCluster", destroy, let, destroy, map[string]string{us: orphan}},
		"a user's":                        {"OmniCluster", destroy, let, let, map[string]string{"kubectl-edit": orphan}},
		"a user's after an undo":          {"OmniCluster", destroy, fields{"orphan": true, "destroyMachines": false}, fields{"orphan": true, "destroyMachines": false}, map[string]string{us: other, "kubectl-edit": orphan}},
		"ours, and a user's":              {"OmniCluster", destroy, let, let, map[string]string{us: orphan, "kustomize-controller": orphan}},
		"ours, destruction is Git's":      {"OmniCluster", destroy, fields{"orphan": true, "destroyMachines": true}, destroy, map[string]string{us: orphan, "kustomize-controller": other}},
		"ours, a user destroys no more":   {"OmniCluster", destroy, fields{"orphan": true, "destroyMachines": false}, fields{"destroyMachines": false}, map[string]string{us: orphan, "kubectl-edit": other}},
		"ours, there was none":            {"OmniCluster", fields{}, let, fields{}, map[string]string{us: orphan}},
		"back after an undo":              {"OmniCluster", destroy, destroy, destroy, map[string]string{us: other}},
		"a user's after both were ours":   {"OmniCluster", destroy, let, let, map[string]string{us: other, "kubectl-edit": both}},
		"our deletionPolicy":              {"OmniHelmRelease", "Uninstall", "Orphan", "Uninstall", map[string]string{us: policy}},
		"our deletionPolicy, Git has it":  {"OmniHelmRelease", "Uninstall", "Orphan", "Orphan", map[string]string{us: policy, "argocd-controller": policy}},
		"a user's deletionPolicy":         {"OmniHelmRelease", "Uninstall", "Orphan", "Orphan", map[string]string{"kubectl-edit": policy}},
		"a user's other deletionPolicy":   {"OmniSecretSync", "Orphan", "Delete", "Delete", map[string]string{"kubectl-edit": policy}},
		"without a field of the spec yet": {"OmniSecretSync", "Delete", "Orphan", "Delete", map[string]string{us: policy, "kubectl-edit": `{"f:syncInterval":{}}`}},
	} {
		for _, replicas := range []int64{0, 1} {
			old, live := policed(test.kind, test.old, nil), policed(test.kind, test.live, test.writers)
			old.SetFinalizers([]string{theirFinalizer})

			before := &backup{Objects: []unstructured.Unstructured{old}, Deployments: operatorWith(1)}
			merged := before.merge(&state{Deployments: operatorWith(replicas), Objects: []unstructured.Unstructured{live}}, time.Now())

			got, _, _ := unstructured.NestedFieldNoCopy(merged.Objects[0].Object, "spec", policyField(test.kind))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, %d replicas (-want +got):\n%s", name, replicas, diff)
			}

			if !holds(&merged.Objects[0]) {
				t.Errorf("%s, %d replicas: the finalizer is lost", name, replicas)
			}

			if diff := cmp.Diff(test.want, undone(t, merged, &live)); diff != "" {
				t.Errorf("%s, %d replicas, after undo (-want +got):\n%s", name, replicas, diff)
			}
		}
	}
}

// undone returns the policy of an object after undo.
func undone(t *testing.T, from *backup, live *unstructured.Unstructured) any {
	t.Helper()

	of, _ := kindNamed(live.GetKind())
	definition := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"names": map[string]any{"kind": of.Name, "plural": of.Plural}},
	}}

	stored := live.DeepCopy()
	stored.SetAPIVersion("omni.texashpc.com/v1alpha1")
	stored.SetNamespace("team-a")
	from.Objects[0].SetNamespace("team-a")

	m := migrationOn(fakeHub(stored))
	m.backup = from

	s := &state{Definitions: []unstructured.Unstructured{definition}, Objects: []unstructured.Unstructured{*stored}}
	if err := m.putPolicies(t.Context(), s); err != nil {
		t.Fatal(err)
	}

	got, err := m.hub.get(t.Context(), of.resource(), "team-a", "one")
	if err != nil {
		t.Fatal(err)
	}

	policy, _, _ := unstructured.NestedFieldNoCopy(got.Object, "spec", policyField(of.Name))

	return policy
}

// What went with its definition is in the backup until it is imported, also if the old operator runs again: its finalizer was
// off, so nobody has done what a deletion asks for.
func TestWhatWentWithItsDefinitionStays(t *testing.T) {
	made := metav1.NewTime(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	definition := func(uid string, at time.Time) unstructured.Unstructured {
		crd := unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"names": map[string]any{"kind": "OmniWorkers"}}}}
		crd.SetName("omniworkers")
		crd.SetUID(types.UID(uid))
		crd.SetCreationTimestamp(metav1.NewTime(at))

		return crd
	}
	workers := policed("OmniWorkers", nil, nil)
	workers.SetCreationTimestamp(made)

	first := definition("first", made.Add(-time.Hour))
	going := *first.DeepCopy()
	going.SetDeletionTimestamp(&made)

	for name, test := range map[string]struct {
		definitions []unstructured.Unstructured
		want        int
	}{
		"its user deleted it":               {[]unstructured.Unstructured{first}, 0},
		"the definition is gone":            {nil, 1},
		"the definition goes":               {[]unstructured.Unstructured{going}, 1},
		"the definition was made once more": {[]unstructured.Unstructured{definition("second", made.Add(time.Hour))}, 1},
	} {
		before := &backup{Objects: []unstructured.Unstructured{workers}, Definitions: []unstructured.Unstructured{first}}
		s := &state{Deployments: operatorWith(1), Definitions: test.definitions}

		merged := before.merge(s, time.Now())
		if len(merged.Objects) != test.want {
			t.Errorf("%s: %d objects, want %d", name, len(merged.Objects), test.want)
		}

		// Once more: what the backup says of the definitions is that of the last look.
		if again := merged.merge(s, time.Now()); len(again.Objects) != test.want {
			t.Errorf("%s, once more: %d objects, want %d", name, len(again.Objects), test.want)
		}
	}
}
