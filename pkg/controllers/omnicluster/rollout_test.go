package omnicluster

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"google.golang.org/grpc/codes"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	benchPolicy = "fleet"
	readyTime   = time.Minute
)

// governed is a bench with a cluster that runs, under a policy.
func governed(t *testing.T) *bench {
	t.Helper()

	b := running(t)
	b.govern()

	return b
}

// govern makes a policy for some kinds of changes, or for all, and has the controller look at it.
func (b *bench) govern(kinds ...v1alpha1.ChangeKind) {
	b.t.Helper()

	b.create(&v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta(benchPolicy, "uid-policy"),
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &metav1.LabelSelector{}, Changes: kinds, Stages: []v1alpha1.RolloutStage{{Name: "all"}},
		},
		Status: v1alpha1.OmniRolloutPolicyStatus{ReconcileStatus: v1alpha1.ReconcileStatus{ObservedGeneration: 1}},
	})
	b.reconciler.options.Rollouts, b.reconciler.options.RolloutReadyTime = true, readyTime
	b.reconciler.started = b.clock().Add(-time.Hour) // a turn that begins now is not one of an earlier process
}

// upgrade asks for a version, and gives the cluster the ticket for it.
func (b *bench) upgrade(version string) {
	b.t.Helper()
	b.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = version })
	b.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	b.admit()
}

// admit gives the cluster a ticket for the changes that wait.
func (b *bench) admit() {
	b.t.Helper()

	policy := &v1alpha1.OmniRolloutPolicy{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: benchNamespace, Name: benchPolicy}, policy); err != nil {
		b.t.Fatal(err)
	}

	policy.Status.Admitted = []v1alpha1.RolloutTicket{{
		Cluster: benchCluster, UID: "uid-demo", Stage: "all", Hash: b.turn().Hash, Since: metav1.Time{Time: b.clock().UTC().Truncate(time.Second)},
	}}

	if err := b.client.Update(b.t.Context(), policy); err != nil {
		b.t.Fatal(err)
	}
}

// turn is the cluster's status.rollout.
func (b *bench) turn() v1alpha1.OmniClusterRollout {
	b.t.Helper()

	if status := b.get().Status.Rollout; status != nil {
		return *status
	}

	return v1alpha1.OmniClusterRollout{}
}

// asked is the version that Omni was told to run.
func (b *bench) asked() string {
	b.t.Helper()

	cluster, err := b.omni.Unchecked().Get(b.t.Context(), omni.NewCluster(benchCluster).Metadata())
	if err != nil {
		b.t.Fatal(err)
	}

	return cluster.(*omni.Cluster).TypedSpec().Value.GetKubernetesVersion()
}

// copied returns what version the local copy of Omni has, if that is another one.
func (b *bench) copied(want string) string {
	b.t.Helper()

	lease, open := b.pool.Get("uid-connection")
	if !open {
		b.t.Fatal("no session")
	}
	defer lease.Release()

	cluster, err := lease.Copy().Get(b.t.Context(), omni.NewCluster(benchCluster).Metadata())
	if err != nil {
		return err.Error()
	}

	if got := cluster.(*omni.Cluster).TypedSpec().Value.GetKubernetesVersion(); got != want {
		return "Kubernetes " + got
	}

	return ""
}

// reached is the version that Omni upgraded to last.
func (b *bench) reached() string {
	b.t.Helper()

	upgrade, err := b.omni.Unchecked().Get(b.t.Context(), omni.NewKubernetesUpgradeStatus(benchCluster).Metadata())
	if err != nil {
		b.t.Fatal(err)
	}

	return upgrade.(*omni.KubernetesUpgradeStatus).TypedSpec().Value.GetLastUpgradeVersion()
}

// untilTurnEnds reconciles, as time passes, until a turn has ended after the one before.
func (b *bench) untilTurnEnds(before *v1alpha1.RolloutResult) v1alpha1.OmniClusterRollout {
	b.t.Helper()

	b.eventually("the end of the turn", func() string {
		b.advance(time.Second)
		b.run()

		if last := b.turn().Last; last == nil || before != nil && *last == *before {
			return string(b.turn().State)
		}

		return ""
	})

	return b.turn()
}

// TestTurnWhoseWriteIsNotInTheStatus has Omni take a new version, while the status never says so: the call fails
// afterwards, or the status of the run is lost. The turn lasts until the cluster runs well with the version.
func TestTurnWhoseWriteIsNotInTheStatus(t *testing.T) {
	for name, lose := range map[string]func(*bench){
		"the answer is lost": func(b *bench) {
			b.omni.Inject(omnisim.Fault{Method: "Update", Type: omni.ClusterType, Times: 1, AnswerLost: true, Code: codes.Internal})
		},
		"the status is lost": func(b *bench) { b.loseStatus() },
	} {
		t.Run(name, func(t *testing.T) {
			b := governed(t)
			b.upgrade("v1.36.1")
			b.omni.Pause() // it takes the version, and does nothing about it

			b.eventually("the turn", func() string { b.run(); return noState(b.turn(), v1alpha1.RolloutAdmitted) })
			lose(b)
			b.eventually("the write", func() string {
				b.run()

				if asked := b.asked(); asked != "1.36.1" {
					return asked
				}

				return ""
			})

			b.eventually("the local copy", func() string { return b.copied("1.36.1") })

			for range 5 { // longer than a cluster that was well all the time has to stay so
				b.advance(readyTime)
				b.run()
			}

			if turn := b.turn(); turn.State != v1alpha1.RolloutAdmitted || turn.Last != nil {
				t.Fatalf("while Omni has the version: %s, %+v", turn.State, turn.Last)
			}

			b.omni.Resume()

			if turn := b.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone {
				t.Errorf("%+v", turn.Last)
			}

			if reached := b.reached(); reached != "1.36.1" {
				t.Errorf("the turn is over, and Omni runs %s", reached)
			}
		})
	}
}

func noState(turn v1alpha1.OmniClusterRollout, want v1alpha1.RolloutState) string {
	if turn.State != want {
		return "state " + string(turn.State)
	}

	return ""
}

// loseStatus has the next status with a later time of the last write fail with a conflict.
func (b *bench) loseStatus() {
	before, lost := b.get().Status.LastSyncTime, false

	b.reconciler.client = b.client
	b.client = interceptor.NewClient(b.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			cluster, is := o.(*v1alpha1.OmniCluster)
			if is && !lost && !cluster.Status.LastSyncTime.Equal(before) {
				lost = true

				return apierrors.NewConflict(schema.GroupResource{Resource: "omniclusters"}, o.GetName(), nil)
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.loop = b.newLoop()
}

// TestVersionThatNeedsTheVersionThatWaits has one commit raise Talos, which waits for its turn, and a version of Kubernetes
// that needs it, and is free. Omni refuses that one until the turn, which does not fail because of it.
func TestVersionThatNeedsTheVersionThatWaits(t *testing.T) {
	b := newBenchWith(t, omnisim.Options{Phase: 20 * time.Millisecond}, func() *v1alpha1.OmniCluster {
		cluster := newCluster()
		cluster.Spec.Talos.Version = "v1.12.8"

		return cluster
	}())

	machine, err := b.omni.AddMachine(omnisim.Machine{TalosVersion: "v1.12.8", Installed: true})
	if err != nil {
		t.Fatal(err)
	}

	b.create(newControlPlane("cp", machine))
	b.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
	b.govern(v1alpha1.ChangeTalosVersion)
	b.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.Kubernetes.Version, cluster.Spec.Talos.Version = "v1.36.1", "v1.13.3"
	})
	b.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefused)

	if status := b.get().Status; len(status.Refusals) != 1 || status.Rollout.State != v1alpha1.RolloutHeld {
		t.Fatalf("%+v, %+v", status.Refusals, status.Rollout)
	}

	b.admit() // within the pause after a refusal

	if turn := b.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil {
		t.Fatalf("%+v, %+v", turn.Last, turn.Failure)
	}

	if asked := b.asked(); asked != "1.36.1" {
		t.Errorf("Omni was told to run %s", asked)
	}

	b.until(v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	b.quiet()
}

// giveUp has Omni, which stands still, say that it gave the upgrade of Kubernetes up.
func (b *bench) giveUp() {
	b.t.Helper()

	_, err := safe.StateUpdateWithConflicts(b.t.Context(), b.omni.Unchecked(), omni.NewKubernetesUpgradeStatus(benchCluster).Metadata(),
		func(upgrade *omni.KubernetesUpgradeStatus) error {
			spec := upgrade.TypedSpec().Value
			spec.Phase, spec.Error = specs.KubernetesUpgradeStatusSpec_Failed, "no such image"

			return nil
		}, state.WithUpdateOwner(b.upgradeOwner()))
	if err != nil {
		b.t.Fatal(err)
	}
}

// upgradeOwner is the controller of Omni that writes the status of the upgrade.
func (b *bench) upgradeOwner() string {
	upgrade, err := b.omni.Unchecked().Get(b.t.Context(), omni.NewKubernetesUpgradeStatus(benchCluster).Metadata())
	if err != nil {
		b.t.Fatal(err)
	}

	return upgrade.Metadata().Owner()
}

// untilWritten reconciles until Omni was told to run a version, and the copy shows it.
func (b *bench) untilWritten(version string) {
	b.t.Helper()
	b.eventually("the write", func() string { b.run(); return b.copied(version) })
}

// failures is how many turns failed, by the events.
func (b *bench) failures() int {
	count := 0

	for _, event := range b.seen {
		if strings.Contains(event, "RolloutFailed") {
			count++
		}
	}

	return count
}

// TestFixOfAnUpgradeThatOmniGaveUp has Omni say for some time after the fix that it gave up the upgrade before.
func TestFixOfAnUpgradeThatOmniGaveUp(t *testing.T) {
	b := governed(t)
	b.upgrade("v1.35.4")
	b.omni.Pause()
	b.untilWritten("1.35.4")
	b.giveUp()

	turn := b.untilTurnEnds(nil)
	if turn.Last.Result != v1alpha1.RolloutUnsuccessful || turn.Failure == nil || !strings.Contains(turn.Failure.Message, "no such image") {
		t.Fatalf("%+v, %+v", turn.Last, turn.Failure)
	}

	b.advance(time.Hour)
	b.upgrade("v1.35.5")
	b.untilWritten("1.35.5")

	for range 3 {
		b.advance(time.Second)
		b.run()
	}

	if now := b.turn(); now.State != v1alpha1.RolloutAdmitted || *now.Last != *turn.Last {
		t.Fatalf("before Omni has looked at the fix: %s, %+v", now.State, now.Last)
	}

	b.omni.Resume()

	if turn = b.untilTurnEnds(turn.Last); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil || b.reached() != "1.35.5" {
		t.Errorf("%+v, %+v, Omni runs %s", turn.Last, turn.Failure, b.reached())
	}

	if got := b.failures(); got != 1 {
		t.Errorf("%d failures, want 1: %v", got, b.seen)
	}
}

// TestUpgradeThatOmniGaveUpInAClusterThatWaits has another change wait for an approval: the run does not get as far as to
// look whether the cluster is available.
func TestUpgradeThatOmniGaveUpInAClusterThatWaits(t *testing.T) {
	b := governed(t)
	b.upgrade("v1.35.4")
	b.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
	})
	b.delete(newWorkers("w", machineClass, 2))
	b.omni.Pause()
	b.untilWritten("1.35.4")
	b.until(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)
	b.giveUp()

	if turn := b.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutUnsuccessful || !strings.HasPrefix(turn.Failure.Message, "UpgradeFailed: ") {
		t.Errorf("%+v, %+v", turn.Last, turn.Failure)
	}
}
