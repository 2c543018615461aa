package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The commands of docs/how-to/upgrade-cluster.md and docs/how-to/scale-workers.md upgrade a cluster and give it more workers.
func TestUpgradeAndScalePages(t *testing.T) {
	t.Parallel()

	upgrade := commandsOf(t, "docs/how-to/upgrade-cluster.md", 2)
	scale := commandsOf(t, "docs/how-to/scale-workers.md", 1)

	f := newFleet(t)
	f.cluster("c")

	r := f.newReader("CLUSTER=c", "VERSION=v1.36.1", "SET=c-w", "SIZE=3")
	r.types(upgrade[0].text)
	r.types(upgrade[1].text)

	if got := get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.Omni; got == nil || got.KubernetesVersion != "v1.36.1" {
		t.Errorf("Omni has %+v", got)
	}

	r.types(scale[0].text)
	f.waitMachines("c", "c-w", 3)
}

// The commands of docs/how-to/delete-cluster.md destroy one cluster with all that belongs to it, and let another one go, which
// stays in Omni as it was.
func TestDeleteClusterPage(t *testing.T) {
	t.Parallel()

	const guarded = "  deletePolicy: {requireConfirmation: true}"

	steps := commandsOf(t, "docs/how-to/delete-cluster.md", 4)

	f := newFleet(t)
	f.apply(clusterManifest("gone", guarded), controlPlaneManifest("gone-cp", "gone", f.machines[0]),
		workersManifest("gone-w", "gone", classOf(pool, 2)), copyManifest("gone"))
	f.apply(clusterManifest("kept", guarded), controlPlaneManifest("kept-cp", "kept", f.machines[1]),
		workersManifest("kept-w", "kept", classOf(pool, 2)), copyManifest("kept"))

	for _, name := range []string{"gone", "kept"} {
		f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.waitCondition("oss", name, v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	}

	r := f.newReader("CLUSTER=gone")
	r.types(steps[0].text)
	r.types(steps[1].text)

	if f.view("gone").Exists {
		t.Error("Omni still has the cluster that was destroyed")
	}

	r = f.newReader("CLUSTER=kept")
	r.types(steps[2].text)
	r.wants(f.run("get", "oss", "kept", "-o", "jsonpath={.spec.deletionPolicy}"), "Orphan")
	r.types(steps[3].text)

	if view := f.view("kept"); !view.Exists || view.Machines["kept-kept-w"] != 2 {
		t.Errorf("Omni has %+v of the cluster that was let go", view)
	}

	if left := f.run("get", "ocl,ocp,ow,om,oke,oss,ohr", "-o", "name"); left != "" {
		t.Errorf("there are still %s", left)
	}
}

// copyManifest is a copy of a Secret into a cluster that cannot be reached yet.
func copyManifest(cluster string) string {
	return `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata:
  name: ` + cluster + `
spec:
  clusterRef:
    name: ` + cluster + `
  kubeconfigSecretRef:
    name: absent
  sourceSecretRef:
    name: absent
  targetSecretRef:
    name: copy
    namespace: apps
`
}
