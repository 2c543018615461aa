package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8stesting "k8s.io/client-go/testing"
)

// hubWithCluster is a migration of a hub with one OmniCluster, which was saved with another policy.
func hubWithCluster(t *testing.T, saved, live string) (*Migration, *k8stesting.Fake) {
	t.Helper()

	objects := fakeHub(
		parsed(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: hub}"),
		parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.omni.texashpc.com}
spec: {group: omni.texashpc.com, names: {kind: OmniCluster, plural: omniclusters}}`),
		stored(t, "OmniCluster", "", "{deletePolicy: "+live+"}"),
	)

	m := migrationOn(objects, stored(t, "OmniCluster", "", "{deletePolicy: "+saved+"}"))
	m.hub.metadata = noSecrets()

	return m, &objects.Fake
}

func policyOf(t *testing.T, m *Migration) map[string]any {
	t.Helper()

	of, _ := kindNamed("OmniCluster")

	got, err := m.hub.get(t.Context(), of.resource(), "team-a", "one")
	if err != nil {
		t.Fatal(err)
	}

	policy, _, _ := unstructured.NestedMap(got.Object, "spec", "deletePolicy")

	return policy
}

// What a user has written since the backup is not changed before it is saved: the older policy would come back in its place.
func TestMakeHarmlessWhatWasWrittenSince(t *testing.T) {
	m, _ := hubWithCluster(t, "{destroyMachines: true}", "{destroyMachines: false}")

	err := m.makeHarmless(t.Context())
	if err == nil || !strings.Contains(err.Error(), "OmniCluster team-a/one was written after the backup: run this again") {
		t.Errorf("got %v", err)
	}

	if policy := policyOf(t, m); policy["destroyMachines"] != false || policy["orphan"] != nil {
		t.Errorf("the policy is %v", policy)
	}
}

// What is changed is the object that was compared with the backup.
func TestMakeHarmlessWhatWasRead(t *testing.T) {
	m, calls := hubWithCluster(t, "{destroyMachines: true}", "{destroyMachines: true}")

	if err := m.makeHarmless(t.Context()); err != nil {
		t.Fatal(err)
	}

	if policy := policyOf(t, m); policy["orphan"] != true || policy["destroyMachines"] != nil {
		t.Errorf("the policy is %v", policy)
	}

	for _, call := range calls.Actions() {
		if patch, ok := call.(k8stesting.PatchAction); ok && !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"7"`) {
			t.Errorf("patched with %s", patch.GetPatch())
		}
	}
}
