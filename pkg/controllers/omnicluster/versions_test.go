package omnicluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// eachOmni runs a test with a running cluster in an Omni of release 1.9.3, and in one that takes one version at a time.
func eachOmni(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()

	for name, refuses := range map[string]bool{"release 1.9.3": false, "one at a time": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureWith(t, omnisim.Options{Phase: 20 * time.Millisecond, RefuseConcurrentUpgrades: refuses}, newCluster(), newWorkers("w", machineClass, 2))
			f.create(newControlPlane("cp", f.machines[0]))
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
			test(t, f)
		})
	}
}

// versions are those that Omni was told to run, Talos first.
func (f *fixture) versions() string {
	f.t.Helper()

	cluster, err := f.omni.Unchecked().Get(f.t.Context(), omni.NewCluster(testCluster).Metadata())
	if err != nil {
		f.t.Fatal(err)
	}

	spec := cluster.(*omni.Cluster).TypedSpec().Value

	return spec.GetTalosVersion() + " " + spec.GetKubernetesVersion()
}

// askForVersions asks for versions in one commit.
func (f *fixture) askForVersions(talos, kubernetes string) {
	f.t.Helper()
	f.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.Talos.Version, cluster.Spec.Kubernetes.Version = talos, kubernetes
	})
}

// clusterUpdates is how many updates of Clusters Omni took.
func (f *fixture) clusterUpdates() int {
	count := 0

	for _, write := range f.omni.Writes() {
		if write.Type == omni.ClusterType && write.Verb == "Update" {
			count++
		}
	}

	return count
}

// untilWaiting reconciles until Omni has versions, and the status says what the other version waits for.
func (f *fixture) untilWaiting(versions, message string) {
	f.t.Helper()
	f.eventually(message, func() string {
		f.run()

		cluster := f.get()
		synced := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSynced)

		if f.versions() != versions || synced == nil || synced.Reason != v1alpha1.ReasonProgressing || !strings.Contains(synced.Message, message) {
			return fmt.Sprint(f.versions(), shown(cluster))
		}

		return ""
	})
}

// untilAll reconciles until Omni has both versions, and runs them. Omni refuses nothing meanwhile.
func (f *fixture) untilAll(versions string) {
	f.t.Helper()
	f.eventually("both versions", func() string {
		f.run()

		status := f.get().Status
		if len(status.Refusals) > 0 {
			f.t.Fatalf("refused: %+v", status.Refusals)
		}

		if f.versions() != versions || !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) ||
			!apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionSynced) {
			return fmt.Sprint(f.versions(), shown(f.get()))
		}

		return ""
	})
}

// TestBothVersionsInOneCommit raises both versions and sets a label: Talos and the label come with the first write, Kubernetes
// when Omni is done with Talos, also if another process goes on in between.
func TestBothVersionsInOneCommit(t *testing.T) {
	eachOmni(t, func(t *testing.T, f *fixture) {
		before := f.clusterUpdates()

		f.omni.Pause()
		f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Labels = map[string]string{"team": "a"} })
		f.askForVersions("v1.13.5", "v1.36.1")
		f.untilWaiting("1.13.5 1.35.1", `waiting for Omni: Cluster "demo": Kubernetes v1.36.1 waits until Omni has finished the Talos upgrade`)
		f.restart()

		for range 3 {
			f.advance(time.Minute)
			f.run()
		}

		f.untilWaiting("1.13.5 1.35.1", "Kubernetes v1.36.1 waits")

		if plan := f.get().Status.Plan; plan.Updates != 1 || !strings.Contains(plan.Diff, "Kubernetes v1.36.1 waits until Omni has finished the Talos upgrade") {
			t.Errorf("%+v", plan)
		}

		f.omni.Resume()
		f.untilAll("1.13.5 1.36.1")

		if got := f.clusterUpdates() - before; got != 2 {
			t.Errorf("%d updates of the Cluster, want 2", got)
		}

		f.quiet()
	})
}

// TestBothVersionsInOneTurn does the same under a policy.
func TestBothVersionsInOneTurn(t *testing.T) {
	eachOmni(t, func(t *testing.T, f *fixture) {
		f.govern()
		f.askForVersions("v1.13.5", "v1.36.1")
		f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
		f.omni.Pause()
		f.admit()
		f.untilWaiting("1.13.5 1.35.1", "Kubernetes v1.36.1 waits")

		for range 3 {
			f.advance(2 * readyTime)
			f.run()
		}

		if turn := f.turn(); turn.State != v1alpha1.RolloutAdmitted || turn.Last != nil {
			t.Fatalf("between the versions: %+v", turn)
		}

		f.omni.Resume()

		if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone || f.versions() != "1.13.5 1.36.1" || f.reached() != "1.36.1" {
			t.Errorf("%+v: %s", turn, f.versions())
		}

		f.untilAll("1.13.5 1.36.1")
	})
}

// TestVersionsDuringAnUpgrade takes an upgrade of Talos back while it runs, and asks for another Kubernetes in the same commit:
// the one begins at once, the other waits. Then it does so with the two exchanged.
func TestVersionsDuringAnUpgrade(t *testing.T) {
	eachOmni(t, func(t *testing.T, f *fixture) {
		f.untilUpgrading("v1.13.5", "v1.35.1", func() string {
			upgrade, err := f.omni.Unchecked().Get(t.Context(), omni.NewTalosUpgradeStatus(testCluster).Metadata())
			if err != nil {
				return err.Error()
			}

			return notPhase(upgrade.(*omni.TalosUpgradeStatus).TypedSpec().Value.GetPhase(), specs.TalosUpgradeStatusSpec_Upgrading)
		})
		f.askForVersions("v1.13.3", "v1.35.4")
		f.untilWaiting("1.13.3 1.35.1", "Kubernetes v1.35.4 waits until Omni has finished the Talos upgrade")
		f.omni.Resume()
		f.untilAll("1.13.3 1.35.4")

		f.untilUpgrading("v1.13.3", "v1.35.5", func() string {
			upgrade, err := f.omni.Unchecked().Get(t.Context(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata())
			if err != nil {
				return err.Error()
			}

			return notPhase(upgrade.(*omni.KubernetesUpgradeStatus).TypedSpec().Value.GetPhase(), specs.KubernetesUpgradeStatusSpec_Upgrading)
		})
		f.askForVersions("v1.13.5", "v1.35.4")
		f.untilWaiting("1.13.3 1.35.4", "Talos v1.13.5 waits until Omni has finished the Kubernetes upgrade")
		f.omni.Resume()
		f.untilAll("1.13.5 1.35.4")
	})
}

// untilUpgrading asks for versions, and stops Omni in the middle of the upgrade: step by step, because a look from outside may come
// too late.
func (f *fixture) untilUpgrading(talos, kubernetes string, missing func() string) {
	f.t.Helper()
	f.omni.Pause()
	f.askForVersions(talos, kubernetes)
	f.eventually("the write", func() string {
		f.run()

		if got := f.versions(); "v"+strings.Replace(got, " ", " v", 1) != talos+" "+kubernetes {
			return got
		}

		return ""
	})

	f.eventually("the upgrade", func() string {
		if missing() != "" {
			f.omni.Step()
		}

		return missing()
	})
}

func notPhase[P interface {
	comparable
	fmt.Stringer
}](phase, want P) string {
	if phase != want {
		return phase.String()
	}

	return ""
}

// TestUpgradeThatBeganMeanwhile has Omni refuse a version because of an upgrade that the local copy does not show yet. The
// turn goes on, and has not failed.
func TestUpgradeThatBeganMeanwhile(t *testing.T) {
	f := governed(t)
	f.omni.Inject(omnisim.Fault{
		Method: "Update", Type: omni.ClusterType, Times: 2, Code: codes.InvalidArgument,
		Message: "failed to validate: 1 error occurred:\n\t* the Kubernetes version cannot be updated while a Talos upgrade is in progress\n\n",
	})
	f.upgrade("v1.36.1")

	if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil || f.asked() != "1.36.1" {
		t.Errorf("%+v, Omni was told to run %s", turn, f.asked())
	}
}
