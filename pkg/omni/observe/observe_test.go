package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

const (
	manifestPending  = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_PENDING
	manifestApplied  = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_APPLIED
	manifestDeleting = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_DELETING
)

func manifest(
	phase specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_Phase, kind, namespace, name string,
) *specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus {
	return &specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{Phase: phase, Kind: kind, Namespace: namespace, Name: name}
}

func manifestGroup(
	phase specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_Phase, manifests ...*specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus,
) *specs.ClusterKubernetesManifestsStatusSpec_GroupStatus {
	group := &specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{
		Phase: phase, Manifests: map[string]*specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{},
	}

	for _, one := range manifests {
		group.Manifests[one.GetKind()+one.GetNamespace()+one.GetName()] = one
	}

	return group
}

// populate creates a cluster "demo" with every resource that Omni has of one.
func populate(t *testing.T, st state.State) {
	t.Helper()

	plantest.Sync(t, st, omnitest.FullTemplate)
	omnitest.LockMachine(t, st, omnitest.Machine2)

	uuid := omnires.NewClusterUUID("demo")
	uuid.TypedSpec().Value.Uuid = "0a1b"

	for id, result := range map[string]omni.KubernetesHealthCheckStatusSpec{
		"demo-smoke": {State: omni.HealthCheckFailed, Error: "exit code 1", Output: "no\nroute"},
		"demo-quiet": {State: omni.HealthCheckFailed}, "demo-runs": {State: 1}, "demo-passed": {State: 3, Output: "fine"},
	} {
		check := omni.NewKubernetesHealthCheckStatus(id)
		*check.TypedSpec() = result
		omnitest.MustCreate(t, st, omnitest.Labelled(check, "demo"))
	}

	clusterStatus := omnires.NewClusterStatus("demo")
	clusterStatus.TypedSpec().Value = &specs.ClusterStatusSpec{
		Available: true, Phase: specs.ClusterStatusSpec_SCALING_UP, Ready: true, KubernetesAPIReady: true, ControlplaneReady: true,
		HasConnectedControlPlanes: true, Machines: &specs.Machines{Total: 3, Healthy: 1, Connected: 2, Requested: 4},
	}

	balancer := omnires.NewLoadBalancerStatus("demo")
	balancer.TypedSpec().Value.Healthy, balancer.TypedSpec().Value.Stopped = true, true

	kubernetes := omnires.NewKubernetesUpgradeStatus("demo")
	kubernetes.TypedSpec().Value = &specs.KubernetesUpgradeStatusSpec{
		Phase: specs.KubernetesUpgradeStatusSpec_Upgrading, Step: "kubelet\n", Status: "waiting for machine m1 to be unlocked", LastUpgradeVersion: "1.34.0",
	}

	talos := omnires.NewTalosUpgradeStatus("demo")
	talos.TypedSpec().Value = &specs.TalosUpgradeStatusSpec{Phase: specs.TalosUpgradeStatusSpec_Failed, Error: "no image"}

	control := omnitest.Labelled(omnires.NewControlPlaneStatus("demo-control-planes"), "demo")
	control.TypedSpec().Value.Conditions = []*specs.ControlPlaneStatusSpec_Condition{
		{Type: specs.ConditionType_WireguardConnection, Status: specs.ControlPlaneStatusSpec_Condition_Ready},
		{Type: specs.ConditionType_Etcd, Status: specs.ControlPlaneStatusSpec_Condition_NotReady, Reason: "no quorum"},
	}

	workers := omnitest.Labelled(omnires.NewMachineSetStatus("demo-workers"), "demo")
	workers.TypedSpec().Value = &specs.MachineSetStatusSpec{
		Phase: specs.MachineSetPhase_ScalingUp, Error: "waiting", LockedUpdates: 1,
		Machines: &specs.Machines{Total: 1, Healthy: 1, Connected: 1, Requested: 2},
	}

	member := omnitest.Labelled(omnires.NewClusterMachineStatus(omnitest.Machine2), "demo")
	member.Metadata().Labels().Set(omnires.LabelMachineSet, "demo-workers")
	member.TypedSpec().Value = &specs.ClusterMachineStatusSpec{
		Ready: true, Stage: specs.ClusterMachineStatusSpec_SHUTTING_DOWN, ConfigUpToDate: true, LastConfigError: "x\ny",
	}

	manifests := omnires.NewClusterKubernetesManifestsStatus("demo")
	manifests.TypedSpec().Value = &specs.ClusterKubernetesManifestsStatusSpec{
		OutOfSync: 4, Total: 5, LastError: "the text of a Secret",
		Groups: map[string]*specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{
			"a": manifestGroup(specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_PROGRESSING,
				manifest(manifestApplied, "Namespace", "", "apps"), manifest(manifestPending, "Service", "apps", "web"),
				manifest(manifestPending, "ConfigMap", "apps", "web\n"), manifest(manifestDeleting, "Secret", "apps", "old")),
			"b": manifestGroup(specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_DELETING, manifest(manifestApplied, "Namespace", "", "old")),
		},
	}

	omnitest.MustCreate(t, st, uuid, clusterStatus, balancer, kubernetes, talos, control, workers, member, manifests)

	omnitest.MachineIn(t, st, omnitest.Machine2, true)
	omnitest.MachineIn(t, st, omnitest.Machine3, false)

	// Resources of another cluster must not appear in the status.
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("other"), omnitest.Labelled(omnires.NewMachineSet("other-workers"), "other"))
}

func TestObserve(t *testing.T) {
	st := omnitest.NewFakeOmni()
	populate(t, st)

	want := Status{
		Exists: true, Name: "demo", UUID: "0a1b", Known: true, Phase: "ScalingUp", KubernetesVersion: "1.35.0", TalosVersion: "1.13.2",
		Ready: true, Available: true, KubernetesAPIReady: true, ControlPlaneReady: true, ConnectedControlPlanes: true,
		LoadBalancerKnown: true, LoadBalancerHealthy: false,
		ControlPlaneProblems: []string{"Etcd: no quorum"},
		Machines:             Machines{Total: 3, Connected: 2, Healthy: 1, Requested: 4},
		Kubernetes:           Upgrade{Known: true, Phase: "Upgrading", Step: "kubelet: waiting for machine m1 to be unlocked", Version: "1.34.0"},
		Talos:                Upgrade{Known: true, Phase: "Failed", Error: "no image"},
		MachineSets: []MachineSet{
			{ID: "demo-control-planes", Name: "control-planes", ControlPlane: true, Desired: 1},
			{
				ID: "demo-workers", Name: "workers", Desired: 2, Known: true, Phase: "ScalingUp", Error: "waiting", LockedUpdates: 1,
				Machines: Machines{Total: 1, Connected: 1, Healthy: 1, Requested: 2},
			},
		},
		MachineList: []Machine{
			{ID: omnitest.Machine1, MachineSet: "demo-control-planes", Stage: "Unknown"},
			{
				ID: omnitest.Machine2, MachineSet: "demo-workers", Stage: "ShuttingDown", Ready: true, Registered: true, Connected: true, Locked: true,
				ConfigUpToDate: true, Error: "x y",
			},
			{ID: omnitest.Machine3, MachineSet: "demo-workers", Stage: "Unknown", Registered: true},
		},
		FailedChecks: []string{"quiet: failed", "smoke: exit code 1, output: no route"},
		Manifests: Manifests{
			Total: 5, OutOfSync: 4, Failed: true,
			Pending: Objects{Count: 2, First: "ConfigMap apps/web"}, Deleting: Objects{Count: 2, First: "Namespace old"},
		},
	}

	for name, source := range map[string]state.State{"Omni": st, "the copy": mirrortest.Start(t, st, mirror.Options{}).State()} {
		got, err := Observe(t.Context(), source, "demo")
		if err != nil {
			t.Fatal(err)
		}

		for _, upgrade := range []*Upgrade{&got.Kubernetes, &got.Talos} {
			if upgrade.Updated.IsZero() {
				t.Errorf("%s: it is not known when Omni wrote %+v", name, upgrade)
			}

			upgrade.Updated = time.Time{}
		}

		forgetCreation(t, got.MachineSets)

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestObserveClassSets(t *testing.T) {
	st := omnitest.NewFakeOmni()
	node := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine1, omnitest.UnlimitedSet("demo", "all", "cpu")), "demo")

	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"), omnitest.ClassSet("demo", "some", "cpu", 4), omnitest.UnlimitedSet("demo", "all", "cpu"), node)

	got, err := Observe(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	forgetCreation(t, got.MachineSets)

	want := []MachineSet{
		{ID: "demo-all", Name: "all", Class: "cpu", Desired: 1},
		{ID: "demo-some", Name: "some", Class: "cpu", Desired: 4},
	}
	if diff := cmp.Diff(want, got.MachineSets); diff != "" {
		t.Error(diff)
	}
}

// forgetCreation checks that it is known when Omni made the sets, and takes these times away.
func forgetCreation(t *testing.T, sets []MachineSet) {
	t.Helper()

	for i := range sets {
		if sets[i].Created.IsZero() {
			t.Errorf("it is not known when Omni made set %s", sets[i].ID)
		}

		sets[i].Created = time.Time{}
	}
}

func TestObserveBackup(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plantest.Sync(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.BootstrapSpec+omnitest.WorkersDocument)

	got, err := Observe(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	backups := map[string]string{}
	for _, set := range got.MachineSets {
		backups[set.ID] = set.Backup
	}

	if diff := cmp.Diff(map[string]string{"demo-control-planes": omnitest.Backup, "demo-workers": ""}, backups); diff != "" {
		t.Error(diff)
	}
}

func TestObserveMissing(t *testing.T) {
	st := omnitest.NewFakeOmni()

	// Resources that a deleted cluster leaves behind for a moment do not make it exist.
	omnitest.MustCreate(t, st, omnires.NewClusterStatus("demo"))

	got, err := Observe(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(Status{}, got); diff != "" {
		t.Error(diff)
	}

	m := mirror.Start(t.Context(), omnitest.SilentOmni{State: st}, mirror.Options{})
	defer m.Stop()

	if _, err = Observe(t.Context(), m.State(), "demo"); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("error %v", err)
	}
}
