package omnicluster

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func deleteEverything() plan.DeleteOptions { return plan.DeleteOptions{} }

func everythingAllowed() plan.ApplyOptions { return plan.ApplyOptions{Consent: plan.EveryChange} }

// clusterPointer is the Cluster in Omni's own state.
func clusterPointer() resource.Pointer {
	return resource.NewMetadata("default", "Clusters.omni.sidero.dev", "demo", resource.VersionUndefined)
}

func TestRemoteStatus(t *testing.T) {
	got := remoteStatus(observe.Status{
		Exists: true, Phase: "Running", KubernetesVersion: "1.35.1", TalosVersion: "1.13.3", KubernetesAPIReady: true, ControlPlaneReady: true,
		Machines:   observe.Machines{Total: 4, Connected: 3, Healthy: 2, Requested: 5},
		Kubernetes: observe.Upgrade{Known: true, Phase: "Upgrading", Step: "kubelet", Error: "slow"},
		MachineSets: []observe.MachineSet{
			{ID: "demo-control-planes", Name: "control-planes", Known: true, Ready: true, Phase: "Running", Desired: 1, Machines: observe.Machines{Requested: 1}},
			{ID: "demo-w", Name: "w", Known: true, Ready: true, Phase: "Running", Desired: 3, Machines: observe.Machines{Requested: 2}, LockedUpdates: 1},
			{ID: "demo-x", Name: "x", Known: true, Ready: true, TearingDown: true},
		},
		MachineList: []observe.Machine{{ID: "a", Stage: "Running", Ready: true, Connected: true}, {ID: "b", Stage: "Booting"}},
	}, map[string]bool{"a": true})

	want := &v1alpha1.OmniClusterRemoteStatus{
		Phase: "Running", KubernetesVersion: "v1.35.1", TalosVersion: "v1.13.3", KubernetesAPIReady: true, ControlPlaneReady: true,
		Machines: v1alpha1.MachineCounts{Total: 4, Connected: 3, Healthy: 2, Requested: 5},
		Upgrades: v1alpha1.UpgradeStatuses{Kubernetes: &v1alpha1.UpgradeStatus{Phase: "Upgrading", Step: "kubelet", Error: "slow"}},
		MachineSets: []v1alpha1.MachineSetStatus{
			{Name: "control-planes", Phase: "Running", Ready: true, Machines: v1alpha1.MachineCounts{Requested: 1}},
			{Name: "w", Phase: "Running", Machines: v1alpha1.MachineCounts{Requested: 2}, LockedUpdates: 1},
			{Name: "x"},
		},
		MachineStates: []v1alpha1.MachineState{{ID: "a", Stage: "Running", Ready: true, Connected: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Omni works out the phase some time after the teardown was requested; who must know reads it here.
func TestRemoteStatusOfATeardown(t *testing.T) {
	if got := remoteStatus(observe.Status{Exists: true, TearingDown: true, Phase: "Running"}, nil).Phase; got != v1alpha1.ClusterPhaseDestroying {
		t.Errorf("phase %q", got)
	}
}

func TestAvailableReason(t *testing.T) {
	for reason, want := range map[string]string{
		observe.ReasonKubernetesUpgrading:   "Upgrading",
		observe.ReasonTalosUpgrading:        "Upgrading",
		observe.ReasonUpgradeFailed:         "UpgradeFailed",
		observe.ReasonManifestsNotApplied:   "ManifestsNotApplied",
		observe.ReasonControlPlaneNotReady:  "NotRunning",
		observe.ReasonKubernetesAPINotReady: "NotRunning",
		observe.ReasonStatusPending:         "NotRunning",
	} {
		if got := availableReason(reason); got != want {
			t.Errorf("%s is shown as %s, want %s", reason, got, want)
		}
	}
}
