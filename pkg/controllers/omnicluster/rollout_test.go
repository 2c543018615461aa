package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	testPolicy = "fleet"
	readyTime  = time.Minute
)

// governed is a fixture with a cluster that runs, under a policy.
func governed(t *testing.T) *fixture {
	t.Helper()

	f := running(t)
	f.govern()

	return f
}

// govern makes a policy for some kinds of changes, or for all, and has the controller look at it.
func (f *fixture) govern(kinds ...v1alpha1.ChangeKind) {
	f.t.Helper()

	f.create(&v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta(testPolicy, "uid-policy"),
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{}, Changes: kinds, Stages: []v1alpha1.RolloutStage{{Name: "all"}},
		},
		Status: v1alpha1.OmniRolloutPolicyStatus{ReconcileStatus: v1alpha1.ReconcileStatus{ObservedGeneration: 1}},
	})
	f.reconciler.options.Rollouts, f.reconciler.options.RolloutReadyTime = true, readyTime
	f.reconciler.started = f.clock().Add(-time.Hour) // a turn that begins now is not one of an earlier process
}

// upgrade asks for a version, and gives the cluster the ticket for it.
func (f *fixture) upgrade(version string) {
	f.t.Helper()
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = version })
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.admit()
}

// admit gives the cluster a ticket for the changes that wait.
func (f *fixture) admit() {
	f.t.Helper()

	policy := &v1alpha1.OmniRolloutPolicy{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: testNamespace, Name: testPolicy}, policy); err != nil {
		f.t.Fatal(err)
	}

	policy.Status.Admitted = []v1alpha1.RolloutTicket{{
		Cluster: testCluster, UID: "uid-demo", Stage: "all", Hash: f.turn().Hash, Since: metav1.Time{Time: f.clock().UTC().Truncate(time.Second)},
	}}

	if err := f.client.Update(f.t.Context(), policy); err != nil {
		f.t.Fatal(err)
	}
}

// turn is the cluster's status.rollout.
func (f *fixture) turn() v1alpha1.OmniClusterRollout {
	f.t.Helper()

	if status := f.get().Status.Rollout; status != nil {
		return *status
	}

	return v1alpha1.OmniClusterRollout{}
}

// asked is the version that Omni was told to run.
func (f *fixture) asked() string {
	f.t.Helper()

	cluster, err := f.omni.Unchecked().Get(f.t.Context(), omni.NewCluster(testCluster).Metadata())
	if err != nil {
		f.t.Fatal(err)
	}

	return cluster.(*omni.Cluster).TypedSpec().Value.GetKubernetesVersion()
}

// copied returns what version the local copy of Omni has, if that is another one.
func (f *fixture) copied(want string) string {
	f.t.Helper()

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	cluster, err := lease.Copy().Get(f.t.Context(), omni.NewCluster(testCluster).Metadata())
	if err != nil {
		return err.Error()
	}

	if got := cluster.(*omni.Cluster).TypedSpec().Value.GetKubernetesVersion(); got != want {
		return "Kubernetes " + got
	}

	return ""
}

// reached is the version that Omni upgraded to last.
func (f *fixture) reached() string {
	f.t.Helper()

	upgrade, err := f.omni.Unchecked().Get(f.t.Context(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata())
	if err != nil {
		f.t.Fatal(err)
	}

	return upgrade.(*omni.KubernetesUpgradeStatus).TypedSpec().Value.GetLastUpgradeVersion()
}

// untilTurnEnds reconciles, as time passes, until a turn has ended after the one before.
func (f *fixture) untilTurnEnds(before *v1alpha1.RolloutResult) v1alpha1.OmniClusterRollout {
	f.t.Helper()

	f.eventually("the end of the turn", func() string {
		f.advance(time.Second)
		f.run()

		if last := f.turn().Last; last == nil || before != nil && *last == *before {
			return string(f.turn().State)
		}

		return ""
	})

	return f.turn()
}

// TestTurnWhoseWriteIsNotInTheStatus has Omni take a new version, while the status never says so: the call fails
// afterwards, or the status of the run is lost. The turn lasts until the cluster runs well with the version.
func TestTurnWhoseWriteIsNotInTheStatus(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"the answer is lost": func(f *fixture) {
			f.omni.Inject(omnisim.Fault{Method: "Update", Type: omni.ClusterType, Times: 1, AnswerLost: true, Code: codes.Internal})
		},
		"the status is lost": func(f *fixture) { f.loseStatus() },
	} {
		t.Run(name, func(t *testing.T) {
			f := governed(t)
			f.upgrade("v1.36.1")
			f.omni.Pause() // it takes the version, and does nothing about it

			f.eventually("the turn", func() string { f.run(); return noState(f.turn(), v1alpha1.RolloutAdmitted) })
			lose(f)
			f.eventually("the write", func() string {
				f.run()

				if asked := f.asked(); asked != "1.36.1" {
					return asked
				}

				return ""
			})

			f.eventually("the local copy", func() string { return f.copied("1.36.1") })

			for range 5 { // longer than a cluster that was well all the time has to stay so
				f.advance(readyTime)
				f.run()
			}

			if turn := f.turn(); turn.State != v1alpha1.RolloutAdmitted || turn.Last != nil {
				t.Fatalf("while Omni has the version: %s, %+v", turn.State, turn.Last)
			}

			f.omni.Resume()

			if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone {
				t.Errorf("%+v", turn.Last)
			}

			if reached := f.reached(); reached != "1.36.1" {
				t.Errorf("the turn is over, and Omni runs %s", reached)
			}
		})
	}
}

// TestTurnThatEndedWhileNobodyLooked has the controller away from the middle of an upgrade until long after its deadline, while a
// newer version is asked for. The turn has not failed: the newer version waits for one of its own.
func TestTurnThatEndedWhileNobodyLooked(t *testing.T) {
	f := governed(t)
	f.upgrade("v1.36.1")
	f.omni.Pause()
	f.eventually("the upgrade in the status", func() string {
		f.run()

		ready := apimeta.FindStatusCondition(f.get().Status.Conditions, v1alpha1.ConditionReady)
		if f.turn().State != v1alpha1.RolloutAdmitted || ready == nil || ready.Status != metav1.ConditionFalse ||
			f.asked() != "1.36.1" {
			return fmt.Sprintf("%s, %+v", f.turn().State, ready)
		}

		return ""
	})

	f.omni.Resume()
	f.eventually("the upgrade in Omni", func() string {
		if reached := f.reached(); reached != "1.36.1" {
			return reached
		}

		lease, open := f.pool.Get("uid-connection")
		if !open {
			return "no session"
		}
		defer lease.Release()

		seen, err := observe.Observe(t.Context(), lease.Copy(), testCluster)
		if runs, _, message := observe.Running(seen); err != nil || !runs {
			return fmt.Sprint(message, err)
		}

		return ""
	})

	f.advance(3 * time.Hour)
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.36.2" })

	turn := f.untilTurnEnds(nil)
	if turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil || turn.State != v1alpha1.RolloutHeld {
		t.Errorf("%+v", turn)
	}
}

// TestTurnWithAChangeThatOmniKeepsFailing has the cluster run with the turn's version, and not become Ready for another reason: the
// turn keeps its slot until the deadline, not longer.
func TestTurnWithAChangeThatOmniKeepsFailing(t *testing.T) {
	f := governed(t)
	f.upgrade("v1.36.1")
	f.eventually("the upgrade", func() string {
		f.run()

		if reached := f.reached(); reached != "1.36.1" {
			return reached
		}

		return noState(f.turn(), v1alpha1.RolloutAdmitted)
	})

	f.omni.Inject(omnisim.Fault{Method: "Update", Type: omni.ClusterType, Code: codes.PermissionDenied})
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Labels = map[string]string{"a": "b"} })

	for range 6 {
		f.run()
		f.run()
		f.advance(time.Hour)
	}

	turn := f.turn()
	if turn.Last == nil || turn.Last.Result != v1alpha1.RolloutUnsuccessful || turn.Failure == nil {
		t.Errorf("%s, %+v, %+v", turn.State, turn.Last, turn.Failure)
	}
}

func noState(turn v1alpha1.OmniClusterRollout, want v1alpha1.RolloutState) string {
	if turn.State != want {
		return "state " + string(turn.State)
	}

	return ""
}

// loseStatus has the next status with a later time of the last write fail with a conflict.
func (f *fixture) loseStatus() {
	before, lost := f.get().Status.LastSyncTime, false

	f.reconciler.client = f.client
	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			cluster, is := o.(*v1alpha1.OmniCluster)
			if is && !lost && !cluster.Status.LastSyncTime.Equal(before) {
				lost = true

				return apierrors.NewConflict(schema.GroupResource{Resource: "omniclusters"}, o.GetName(), nil)
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	f.loop = f.newLoop()
}

// TestVersionThatNeedsTheVersionThatWaits has one commit raise Talos, which waits for its turn, and a version of Kubernetes
// that needs it, and is free. Omni refuses that one until the turn, which does not fail because of it.
func TestVersionThatNeedsTheVersionThatWaits(t *testing.T) {
	f := newFixtureWith(t, omnisim.Options{Phase: 20 * time.Millisecond}, func() *v1alpha1.OmniCluster {
		cluster := newCluster()
		cluster.Spec.Talos.Version = "v1.12.8"

		return cluster
	}())

	machine, err := f.omni.AddMachine(omnisim.Machine{TalosVersion: "v1.12.8", Installed: true})
	if err != nil {
		t.Fatal(err)
	}

	f.create(newControlPlane("cp", machine))
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
	f.govern(v1alpha1.ChangeTalosVersion)
	f.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.Kubernetes.Version, cluster.Spec.Talos.Version = "v1.36.1", "v1.13.3"
	})
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefused)

	if status := f.get().Status; len(status.Refusals) != 1 || status.Rollout.State != v1alpha1.RolloutHeld {
		t.Fatalf("%+v, %+v", status.Refusals, status.Rollout)
	}

	f.admit() // within the pause after a refusal

	if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil {
		t.Fatalf("%+v, %+v", turn.Last, turn.Failure)
	}

	if asked := f.asked(); asked != "1.36.1" {
		t.Errorf("Omni was told to run %s", asked)
	}

	f.until(v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	f.quiet()
}

// giveUp has Omni, which stands still, say that it gave the upgrade of Kubernetes up.
func (f *fixture) giveUp() {
	f.t.Helper()

	_, err := safe.StateUpdateWithConflicts(f.t.Context(), f.omni.Unchecked(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata(),
		func(upgrade *omni.KubernetesUpgradeStatus) error {
			spec := upgrade.TypedSpec().Value
			spec.Phase, spec.Error = specs.KubernetesUpgradeStatusSpec_Failed, "no such image"

			return nil
		}, state.WithUpdateOwner(f.upgradeOwner()))
	if err != nil {
		f.t.Fatal(err)
	}
}

// upgradeOwner is the controller of Omni that writes the status of the upgrade.
func (f *fixture) upgradeOwner() string {
	upgrade, err := f.omni.Unchecked().Get(f.t.Context(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata())
	if err != nil {
		f.t.Fatal(err)
	}

	return upgrade.Metadata().Owner()
}

// untilWritten reconciles until Omni was told to run a version, and the copy shows it.
func (f *fixture) untilWritten(version string) {
	f.t.Helper()
	f.eventually("the write", func() string { f.run(); return f.copied(version) })
}

// failures is how many turns failed, by the events.
func (f *fixture) failures() int {
	count := 0

	for _, event := range f.events.All() {
		if strings.Contains(event, "RolloutFailed") {
			count++
		}
	}

	return count
}

// TestFixOfAnUpgradeThatOmniGaveUp has Omni say for some time after the fix that it gave up the upgrade before. It makes no
// difference whether Omni's clock is ahead of ours or behind.
func TestFixOfAnUpgradeThatOmniGaveUp(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"the same clock": 0, "Omni is ahead": 2 * time.Hour, "Omni is behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := governed(t)
			f.advance(-ahead)
			f.reconciler.started = f.clock().Add(-time.Hour)
			fixWhatOmniGaveUp(t, f)
		})
	}
}

func fixWhatOmniGaveUp(t *testing.T, f *fixture) {
	t.Helper()
	f.upgrade("v1.35.4")
	f.omni.Pause()
	f.untilWritten("1.35.4")
	f.giveUp()

	turn := f.untilTurnEnds(nil)
	if turn.Last.Result != v1alpha1.RolloutUnsuccessful || turn.Failure == nil || !strings.Contains(turn.Failure.Message, "no such image") {
		t.Fatalf("%+v, %+v", turn.Last, turn.Failure)
	}

	f.advance(time.Hour)
	f.upgrade("v1.35.5")
	f.untilWritten("1.35.5")

	for range 3 {
		f.advance(time.Second)
		f.run()
	}

	if now := f.turn(); now.State != v1alpha1.RolloutAdmitted || *now.Last != *turn.Last {
		t.Fatalf("before Omni has looked at the fix: %s, %+v", now.State, now.Last)
	}

	f.omni.Resume()

	if turn = f.untilTurnEnds(turn.Last); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil || f.reached() != "1.35.5" {
		t.Errorf("%+v, %+v, Omni runs %s", turn.Last, turn.Failure, f.reached())
	}

	if got := f.failures(); got != 1 {
		t.Errorf("%d failures, want 1: %v", got, f.events.All())
	}
}

// TestUpgradeThatOmniGaveUpInAClusterThatWaits has another change wait for an approval: the run does not get as far as to
// look whether the cluster is available.
func TestUpgradeThatOmniGaveUpInAClusterThatWaits(t *testing.T) {
	f := governed(t)
	f.upgrade("v1.35.4")
	f.edit(func(cluster *v1alpha1.OmniCluster) {
		cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
	})
	f.delete(newWorkers("w", machineClass, 2))
	f.omni.Pause()
	f.untilWritten("1.35.4")
	f.until(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)
	f.giveUp()

	if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutUnsuccessful || !strings.HasPrefix(turn.Failure.Message, "UpgradeFailed: ") {
		t.Errorf("%+v, %+v", turn.Last, turn.Failure)
	}
}

// An override is counted and told once, also if the API server does not take the status for a while.
func TestOverrideIsCountedOnce(t *testing.T) {
	f, counted := governed(t), metrics.NewRollouts()
	f.reconciler.options.Overrides = counted
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.35.4" })
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")

	hash := f.turn().Hash
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: hash + " it cannot wait"}
	})

	cluster := f.get()
	cluster.Status.Rollout.Override = &v1alpha1.RolloutOverride{Hash: hash, Reason: "it cannot wait", User: "alice"} // the API server writes it

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	refusals := 3
	refusing := interceptor.NewClient(f.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if refusals--; refusals >= 0 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "omniclusters"}, testCluster, errors.New("not now"))
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	f.loop = loop.New(f.reconciler.kind(), loop.Settings{Client: refusing, Events: f.events})
	f.eventually("the write", func() string { f.run(); return f.copied("1.35.4") })

	if told := strings.Count(strings.Join(f.events.All(), "\n"), "RolloutOverridden"); told != 1 || refusals >= 0 {
		t.Errorf("told %d times: %q, %d refusals left", told, f.events.All(), refusals)
	}

	want := `
# HELP omni_rollout_overrides_total Clusters whose changes began out of turn by the annotation rollout-override since the controller started.
# TYPE omni_rollout_overrides_total counter
omni_rollout_overrides_total{namespace="team",policy="fleet"} 1
`
	if err := testutil.CollectAndCompare(counted, strings.NewReader(want), "omni_rollout_overrides_total"); err != nil {
		t.Error(err)
	}
}
