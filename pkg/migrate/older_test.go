package migrate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// olderHub is a hub with a definition of the older group and so many objects, beside one of our group if there is both.
func olderHub(t *testing.T, objects int, both bool) *Migration {
	t.Helper()

	definition := func(group string) *unstructured.Unstructured {
		return parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.`+group+`, uid: `+group+`}
spec: {group: `+group+`, names: {kind: OmniCluster, plural: omniclusters}, versions: [{name: v1alpha1, served: true}]}`)
	}

	all := []*unstructured.Unstructured{definition("omni.texas-hpc.org"), parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`), parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {replicas: 1, selector: {matchLabels: {control-plane: controller-manager}}}`)}
	if both {
		all = append(all, definition("omni.texashpc.com"))
	}

	for i := range objects {
		all = append(all, parsed(t, fmt.Sprintf(`
apiVersion: omni.texas-hpc.org/v1alpha1
kind: OmniCluster
metadata: {name: demo-%02d, namespace: team-a, finalizers: [omni.texas-hpc.org/finalizer]}
spec: {}`, i)))
	}

	m := migrationOn(fakeHub(all...))
	m.hub.metadata, m.backup, m.options.Backup = noSecrets(), nil, filepath.Join(t.TempDir(), "backup.json")

	return m
}

// Objects of the older group are not moved, and their operator acts on the same clusters: nothing is run before they are
// gone, and plan says how.
func TestOlderGroup(t *testing.T) {
	for _, both := range []bool{false, true} {
		for objects, wants := range map[int][]string{
			0:  nil,
			1:  {"1 objects of omni.texas-hpc.org are there (OmniCluster team-a/demo-00)", "are not moved", `"By hand" in docs/how-to/migrate.md`, "omni.texas-hpc.org/finalizer"},
			12: {"12 objects of omni.texas-hpc.org are there (OmniCluster team-a/demo-00, ", "and 7 more)"},
		} {
			m := olderHub(t, objects, both)

			plan, err := m.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			problems := strings.Join(plan.Problems, "\n")
			for _, want := range wants {
				if !strings.Contains(problems, want) {
					t.Errorf("both %t, %d objects: no %q in\n%s", both, objects, want, problems)
				}
			}

			if refused := objects > 0 || !both; plan.Refused() != refused {
				t.Errorf("both %t, %d objects: refused %t\n%s", both, objects, plan.Refused(), problems)
			}

			if notes := strings.Join(plan.Notes, "\n"); strings.Contains(notes, "omniclusters.omni.texas-hpc.org") != (objects == 0) {
				t.Errorf("both %t, %d objects: notes\n%s", both, objects, notes)
			}

			if objects == 0 {
				continue
			}

			if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), wants[0]) {
				t.Errorf("both %t, %d objects: run says %v", both, objects, err)
			}

			if deployment, err := m.hub.get(t.Context(), deploymentsResource, "old", "manager"); err != nil || replicas(deployment) != 1 {
				t.Errorf("both %t: run has stopped %v, %v", both, deployment, err)
			}
		}
	}
}

// A run that goes on after the definitions went does not begin to act on clusters that the older operator has got meanwhile.
func TestOlderGroupInALaterRun(t *testing.T) {
	m := olderHub(t, 1, false)
	m.backup = &backup{Format: backupFormat, HubID: "hub", Definitions: []unstructured.Unstructured{*parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.omni.texashpc.com, uid: d1}
spec: {group: omni.texashpc.com, names: {kind: OmniCluster, plural: omniclusters}}`)}}

	if err := m.backup.write(t.Context(), m.options.Backup); err != nil {
		t.Fatal(err)
	}

	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1 objects of omni.texas-hpc.org are there") {
		t.Errorf("run says %v", err)
	}
}
