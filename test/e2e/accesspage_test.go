package e2e

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// What docs/how-to/access.md says of exported kubeconfigs finds them, and its binding for people is accepted.
func TestAccessPage(t *testing.T) {
	t.Parallel()

	const page = "docs/how-to/access.md"

	e := newExporting(t)
	e.apply(exportManifest("robot", "robot-kubeconfig", "robot", "deployers"))
	e.ready("robot")

	r := e.newReader()

	for _, commands := range pageBlocks(t, page, "sh") {
		r.wants(r.types(commands.text), "robot-kubeconfig", "deployers")
	}

	patches := pageBlocks(t, page, "yaml")
	if len(patches) != 1 {
		t.Fatalf("the page has %d patches", len(patches))
	}

	if err := os.WriteFile(filepath.Join(r.dir, "people.yaml"), []byte(patches[0].text), 0o600); err != nil {
		t.Fatal(err)
	}

	r.types("kubectl patch ocl demo --type=merge --patch-file=people.yaml")
	e.waitCondition("ocl", "demo", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")

	if applied := get[v1alpha1.OmniCluster](e.space, "ocl", "demo").Status.AppliedManifests; len(applied) != 1 {
		t.Errorf("Omni has the manifests %v", applied)
	}
}
