package e2e

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A namespace is deleted by mistake. The commands of docs/how-to/stop-a-deletion.md, while omni-controller is stopped, have
// everything in it let go of what it made: the cluster stays in Omni, and the copy and the release in the cluster.
func TestStopADeletionPage(t *testing.T) {
	slow(t)

	steps := pageBlocks(t, "docs/how-to/stop-a-deletion.md", "sh")
	if len(steps) != 3 {
		t.Fatalf("the page has %d blocks of commands", len(steps))
	}

	d := newChain(t)
	page := d.newReader()
	stack.Controller.Kill() // for the first step: the controller of the tests is no Deployment

	page.types("kubectl delete namespace " + d.name + " --wait=false")
	page.wants(page.types(`until kubectl get ocl demo -o jsonpath='{.metadata.deletionTimestamp}' | grep .; do sleep 0.2; done
`+steps[1].text), "OmniCluster", "OmniHelmRelease", "OmniSecretSync", d.name)
	page.wants(page.types(steps[2].text), "omnicluster.omni.texashpc.com/demo patched", "omnihelmrelease.omni.texashpc.com/app patched", "omnisecretsync.omni.texashpc.com/registry patched",
		"omnikubeconfigexport.omni.texashpc.com/robot patched")

	d.restartController()
	page.types("kubectl wait namespace/" + d.name + " --for=delete " + namespaceTimeout)

	if view := d.view("demo"); !view.Exists || view.Deleting || view.Annotations[v1alpha1.MarkOwnerUID] != "" {
		t.Errorf("in Omni: %+v", view)
	}

	d.waitTarget("pull", map[string]string{"username": "robot", "password": "one"})
	d.wantRecords("app", "1 deployed")
}
