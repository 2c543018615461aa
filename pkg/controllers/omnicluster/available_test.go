package omnicluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A dead machine that its set lists no more stays in the cluster, because it cannot be wiped, and Omni has what the objects
// say. The condition that is False says which machine it is, and what to do.
func TestReadyNamesLeavingMachines(t *testing.T) {
	f := newFixture(t, newCluster())
	dead := f.machines[2]
	listed := newWorkers("w", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{f.machines[1], dead}}
	f.create(newControlPlane("cp", f.machines[0]), listed)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.untilDisconnected(dead)

	change(f, "w", &v1alpha1.OmniWorkers{}, func(w *v1alpha1.OmniWorkers) { w.Spec.Machines = w.Spec.Machines[:1] })
	f.until("Synced", metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle)
	f.advance(settleTime)

	f.eventually("Ready to name the machine", func() string {
		f.run()

		found := shown(f.get())
		if ready := strings.Join(found, "\n"); !strings.Contains(ready, "Synced=True") || !strings.Contains(ready, "Ready=False NotRunning: ") ||
			!strings.Contains(ready, "leaving: machine "+dead+" (not connected)") || !strings.Contains(ready, "or remove it in Omni") {
			return ready
		}

		return ""
	})
	f.quiet()
}

// Talos may refuse a configuration that Omni takes. Whoever looks finds which machine it is, and where the error is: it may
// quote the configuration, with what came from Secrets.
func TestReadyNamesMachinesThatRefuseTheirConfiguration(t *testing.T) {
	f := running(t)
	const said = "unknown keys: canary"

	f.omni.RefuseConfiguration(f.machines[0], said)
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Patches = []v1alpha1.Patch{{Name: "net", Inline: &v1alpha1.FreeForm{Raw: []byte(`{"machine":{"network":{"hostname":"x"}}}`)}}}
	})

	f.eventually("Ready to name the machine", func() string {
		f.run()

		found := strings.Join(shown(f.get()), "\n")
		if !strings.Contains(found, "Ready=False NotRunning: ") || !strings.Contains(found, "machine "+f.machines[0]+" refuses its configuration") ||
			strings.Contains(found, said) {
			return found
		}

		return ""
	})

	f.omni.RefuseConfiguration(f.machines[0], "")
	f.until("Ready", metav1.ConditionTrue, "Running")
}
