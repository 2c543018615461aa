package e2e

import (
	"errors"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A namespace is deleted by mistake. The commands of docs/how-to/stop-a-deletion.md, while omni-controller is stopped, have
// everything in it let go of what it made: the clusters stay in Omni, and the copy and the release in the cluster. So does the cluster
// behind a guarded one, at which the deletion has stopped.
func TestStopADeletionPage(t *testing.T) {
	slow(t)

	steps := commandsOf(t, "docs/how-to/stop-a-deletion.md", 6)

	d := newChain(t)
	clusters := []string{"demo", "guarded", "later"}

	d.apply(clusterManifest("guarded", "  deletePolicy: {requireConfirmation: true}"), controlPlaneManifest("guarded-cp", "guarded", d.machines[1]),
		clusterManifest("later"), controlPlaneManifest("later-cp", "later", d.machines[2]))
	d.wait("the clusters in Omni", func() error {
		for _, name := range clusters {
			if view := d.view(name); !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] == "" || get[v1alpha1.OmniCluster](d.space, "ocl", name).Status.OmniClusterID == "" {
				return errors.New(name)
			}
		}

		return nil
	})

	page := d.newReader()
	stack.Controller.Kill() // for the first step: the controller of the tests is no Deployment

	page.types("kubectl delete namespace " + d.name + " --wait=false")
	page.types(`until kubectl get ocl demo -o jsonpath='{.metadata.deletionTimestamp}' | grep . && kubectl get oss registry -o jsonpath='{.metadata.deletionTimestamp}' | grep .; do sleep 0.2; done`)
	page.wants(page.types(steps[1].text), "OmniCluster", "OmniHelmRelease", "OmniSecretSync", d.name, "Terminating")
	page.wants(page.types(steps[2].text), "omnihelmrelease.omni.texashpc.com/app patched", "omnisecretsync.omni.texashpc.com/registry patched",
		"omnikubeconfigexport.omni.texashpc.com/robot patched", "omnicluster.omni.texashpc.com/demo patched", "omnicluster.omni.texashpc.com/guarded patched",
		"omnicluster.omni.texashpc.com/guarded annotated", "omnicluster.omni.texashpc.com/later patched")

	d.restartController()
	page.types("kubectl wait namespace/" + d.name + " --for=delete " + namespaceTimeout)

	for _, name := range clusters {
		if view := d.view(name); !view.Exists || view.Deleting || view.Annotations[v1alpha1.MarkOwnerUID] != "" {
			t.Errorf("%s in Omni: %+v", name, view)
		}
	}

	d.waitTarget("pull", map[string]string{"username": "robot", "password": "one"})
	d.wantRecords("app", "1 deployed")
}
