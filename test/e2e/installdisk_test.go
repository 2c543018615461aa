package e2e

import (
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	ours "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// byTransport is a disk selector.
const byTransport = "disk.transport == 'nvme'"

// waitDisk waits until Omni has this choice for a machine, made by a template or not.
func (f *fleet) waitDisk(machine string, want ours.MachineInstallDiskConfigSpec, byTemplate bool) {
	f.t.Helper()
	f.wait(fmt.Sprintf("the install disk %+v", want), func() error {
		config, err := safe.StateGetByID[*ours.MachineInstallDiskConfig](f.t.Context(), f.omni.State(), machine)
		if err != nil {
			return err
		}

		if _, managed := config.Metadata().Annotations().Get(omni.ResourceManagedByClusterTemplates); *config.TypedSpec() != want || managed != byTemplate {
			return fmt.Errorf("it is %+v, by a template: %t", *config.TypedSpec(), managed)
		}

		return nil
	})
}

// TestInstallDiskInBothWorlds upgrades Omni under a running cluster whose machine has an install disk: Omni turns our patch into
// a resource, and we write nothing. From then on, a selector can be set; and what the document drops goes, unless the machine
// goes.
func TestInstallDiskInBothWorlds(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	machine := f.machines[1]
	withInstall := func(install string) string { return machineManifest(machine, "c", "  labels: {a: b}", install) }

	f.apply(withInstall("  install: {disk: /dev/vda}"), clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]),
		workersManifest("c-w", "c", fmt.Sprintf("machines: [%s, %s]", machine, f.machines[2])))
	f.ready("c")

	// Omni 1.9 has no selectors, and nothing of such a document gets there.
	f.omni.ForgetRequests()
	f.apply(withInstall("  install: {diskSelector: \"" + byTransport + "\"}"))
	f.waitCondition("ocl", "c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonTemplateInvalid, "needs Omni 1.11 or later")
	f.apply(withInstall("  install: {disk: /dev/vda}"))
	f.ready("c")

	if err := f.omni.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	f.wait("the upgrade to be noticed", func() error {
		// While the watches come back, it waits for the connection.
		if stalled := f.conditionOf("c", v1alpha1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
			t.Errorf("%+v", stalled)
		}

		connection, err := tryGet[v1alpha1.OmniConnection](f.space, "oconn", "omni")
		if err == nil && (connection.Status.Omni == nil || connection.Status.Omni.Version != "v1.11.0") {
			err = fmt.Errorf("it says %+v", connection.Status.Omni)
		}

		return err
	})
	f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.reconciled("c")
	f.ready("c")

	if available := f.conditionOf("c", v1alpha1.ConditionAvailable); available == nil || available.Status != metav1.ConditionTrue {
		t.Errorf("%+v", available)
	}

	f.waitDisk(machine, ours.MachineInstallDiskConfigSpec{Disk: "/dev/vda"}, true)

	if writes := f.omni.Writes(); len(writes) > 0 {
		t.Errorf("an upgrade of Omni was answered with %+v", writes)
	}

	f.apply(withInstall("  install: {diskSelector: \"" + byTransport + "\"}"))
	f.waitDisk(machine, ours.MachineInstallDiskConfigSpec{DiskSelector: byTransport}, true)
	f.wantDestroyed()

	f.apply(withInstall(""))
	f.wait("the choice to be gone", func() error {
		_, err := f.omni.State().Get(t.Context(), ours.NewMachineInstallDiskConfig(machine).Metadata())
		if err == nil {
			return fmt.Errorf("it is there")
		}

		if state.IsNotFoundError(err) {
			return nil
		}

		return err
	})
	f.wantDestroyed("MachineInstallDiskConfig m1")

	f.apply(withInstall("  install: {disk: /dev/vdb}"))
	f.waitDisk(machine, ours.MachineInstallDiskConfigSpec{Disk: "/dev/vdb"}, true)

	f.apply(workersManifest("c-w", "c", fmt.Sprintf("machines: [%s]", f.machines[2])))
	f.waitMachines("c", "c-w", 1)
	f.waitDisk(machine, ours.MachineInstallDiskConfigSpec{Disk: "/dev/vdb"}, false)
}

// conditionOf returns a condition of an OmniCluster; nil if it has none of that type.
func (f *fleet) conditionOf(name, conditionType string) *metav1.Condition {
	f.t.Helper()

	return apimeta.FindStatusCondition(get[v1alpha1.OmniCluster](f.space, "ocl", name).Status.Conditions, conditionType)
}
