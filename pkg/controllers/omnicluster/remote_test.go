package omnicluster

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

func deleteEverything() omni.DeleteOptions { return omni.DeleteOptions{} }

func everythingAllowed() omni.ApplyOptions { return omni.ApplyOptions{Leave: omni.EveryChange} }

// clusterPointer is the Cluster in Omni's own state.
func clusterPointer() resource.Pointer {
	return resource.NewMetadata("default", "Clusters.omni.sidero.dev", "demo", resource.VersionUndefined)
}

func TestRemoteStatus(t *testing.T) {
	got := remoteStatus(omni.Status{
		Exists: true, Phase: "Running", KubernetesVersion: "1.35.1", TalosVersion: "1.13.3", KubernetesAPIReady: true, ControlPlaneReady: true,
		Machines:   omni.Machines{Total: 4, Connected: 3, Healthy: 2, Requested: 5},
		Kubernetes: omni.Upgrade{Known: true, Phase: "Upgrading", Step: "kubelet", Error: "slow"},
		MachineSets: []omni.MachineSet{
			{ID: "demo-control-planes", Name: "control-planes", Known: true, Ready: true, Phase: "Running", Desired: 1, Machines: omni.Machines{Requested: 1}},
			{ID: "demo-w", Name: "w", Known: true, Ready: true, Phase: "Running", Desired: 3, Machines: omni.Machines{Requested: 2}, LockedUpdates: 1},
			{ID: "demo-x", Name: "x", Known: true, Ready: true, TearingDown: true},
		},
		MachineList: []omni.Machine{{ID: "a", Stage: "Running", Ready: true, Connected: true}, {ID: "b", Stage: "Booting"}},
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

func TestDescribeProgress(t *testing.T) {
	now := time.Unix(10000, 0)
	since := now.Add(-time.Minute)
	long := now.Add(-time.Hour)

	for name, test := range map[string]struct {
		progress omni.DeleteProgress
		blocks   bool
		reason   string
		message  string
	}{
		"on its way": {
			omni.DeleteProgress{TearingDown: true, Since: since, Blockers: []omni.Blocker{{Machine: "m1", Connected: true, Since: since}}},
			false, "Deleting",
			`cluster "demo" is being destroyed in Omni since 1970-01-01T02:45:40Z; it waits for machine m1 since 1970-01-01T02:45:40Z`,
		},
		"for long": {
			omni.DeleteProgress{TearingDown: true, Since: long, Finalizers: []string{"X"}}, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni since 1970-01-01T01:46:40Z; it waits for Omni's own clean-up`,
		},
		"a machine that is not connected": {
			omni.DeleteProgress{Blockers: []omni.Blocker{{Machine: "m1"}}}, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected); ` +
				`machines that are not connected cannot be reset: spec.deletePolicy.destroyMachines removes them from Omni`,
		},
		"many machines": {
			omni.DeleteProgress{Blockers: []omni.Blocker{
				{Machine: "1", Connected: true}, {Machine: "2", Connected: true}, {Machine: "3", Connected: true},
				{Machine: "4", Connected: true}, {Machine: "5", Connected: true}, {Machine: "6", Connected: true},
			}}, false, "Deleting",
			`cluster "demo" is being destroyed in Omni; it waits for machine 1, machine 2, machine 3, machine 4, machine 5 and 1 more`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeProgress("demo", test.progress, now)
			if got.Blocks() != test.blocks || got.Reason() != test.reason || got.Message() != test.message {
				t.Errorf("blocks %v, %s: %s", got.Blocks(), got.Reason(), got.Message())
			}
		})
	}
}
