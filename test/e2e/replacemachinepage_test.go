package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The commands of docs/how-to/replace-machine.md put another worker in the place of one that is dead and locked, and the
// cluster is Ready again when that was taken out of Omni.
func TestReplaceMachinePage(t *testing.T) {
	t.Parallel()

	steps := commandsOf(t, "docs/how-to/replace-machine.md", 3)

	f := newFleet(t)
	dead, other := f.machines[2], f.machines[3]

	f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", "machines: ["+f.machines[1]+", "+dead+"]"),
		machineManifest(dead, "c", "  locked: true"))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	f.omni.KillMachine(dead)
	f.says("c", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotRunning)
	f.waitCondition("ow", "c-w", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMachinesNotReady)

	r := f.newReader("SET=c-w", "DEAD="+dead, "DEAD_NAME="+dead, "NEW="+other)
	r.types(steps[0].text)
	f.waitCondition("om", dead, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMachinesNotReady)

	r.types("kubectl delete om " + dead + "\n" + steps[1].text)
	f.says("c", v1alpha1.ConditionReady, metav1.ConditionFalse, "", "leaving: machine "+dead+" (not connected)", "or remove it in Omni")

	// What the page has omnictl do.
	if _, err := f.omni.State().Teardown(t.Context(), siderolink.NewLink(dead, nil).Metadata()); err != nil {
		t.Fatal(err)
	}

	r.types(steps[2].text)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.waitMachines("c", "c-w", 2)
	f.wantDestroyed("MachineSetNode m2")
}
