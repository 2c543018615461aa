package migrate

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// olderHub is a hub with a definition of the older group, beside one of our group if there is both.
func olderHub(t *testing.T, both bool) *Migration {
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

	m := migrationOn(fakeHub(all...))
	m.hub.metadata, m.backup, m.options.Backup = noSecrets(), nil, filepath.Join(t.TempDir(), "backup.json")

	return m
}

const olderRefusal = "the definitions omniclusters.omni.texas-hpc.org are of an older release"

// Objects of the older group are not moved, and their operator acts on the same clusters: nothing is run before their
// definitions are gone, and plan names the section of the page that says how.
func TestOlderGroup(t *testing.T) {
	for _, both := range []bool{false, true} {
		m := olderHub(t, both)

		plan, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if problems := strings.Join(plan.Problems, "\n"); !plan.Refused() || !strings.Contains(problems, olderRefusal) || !strings.Contains(problems, `"The older group" in docs/how-to/migrate.md`) {
			t.Errorf("both %t: refused %t\n%s", both, plan.Refused(), problems)
		}

		if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), olderRefusal) {
			t.Errorf("both %t: run says %v", both, err)
		}

		if deployment, err := m.hub.get(t.Context(), deploymentsResource, "old", "manager"); err != nil || replicas(deployment) != 1 {
			t.Errorf("both %t: run has stopped %v, %v", both, deployment, err)
		}
	}
}

// A run that goes on after the definitions went does not begin to act on clusters that the older operator has got meanwhile.
func TestOlderGroupInALaterRun(t *testing.T) {
	m := olderHub(t, false)
	m.backup = &backup{Format: backupFormat, HubID: "hub", Definitions: []unstructured.Unstructured{*parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.omni.texashpc.com, uid: d1}
spec: {group: omni.texashpc.com, names: {kind: OmniCluster, plural: omniclusters}}`)}}

	if err := m.backup.write(t.Context(), m.options.Backup); err != nil {
		t.Fatal(err)
	}

	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), olderRefusal) {
		t.Errorf("run says %v", err)
	}
}
