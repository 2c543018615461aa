package omnicluster

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// second makes a policy that selects the clusters of another one, too.
func (f *fixture) second() {
	f.t.Helper()

	f.create(&v1alpha1.OmniRolloutPolicy{
		ObjectMeta: meta("second", "uid-second"),
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{}, Stages: []v1alpha1.RolloutStage{{Name: "all"}},
		},
		Status: v1alpha1.OmniRolloutPolicyStatus{ReconcileStatus: v1alpha1.ReconcileStatus{ObservedGeneration: 1}},
	})
}

// A second policy over a cluster at work does not take the deadline from its turn: what hangs fails, and counts for the stage.
func TestTurnInAConflictFails(t *testing.T) {
	f := governed(t)
	f.upgrade("v1.35.4")
	f.omni.Pause()
	f.untilWritten("1.35.4")

	if _, err := safe.StateUpdateWithConflicts(t.Context(), f.omni.Unchecked(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata(),
		func(upgrade *omni.KubernetesUpgradeStatus) error {
			upgrade.TypedSpec().Value.Phase, upgrade.TypedSpec().Value.Step = specs.KubernetesUpgradeStatusSpec_Upgrading, "stuck"

			return nil
		}, state.WithUpdateOwner(f.upgradeOwner())); err != nil {
		t.Fatal(err)
	}

	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUpgrading)
	f.second()
	f.advance(3 * time.Hour)
	f.run()

	if turn := f.turn(); turn.State != v1alpha1.RolloutFailed || turn.Failure == nil {
		t.Errorf("state %s, failure %+v", turn.State, turn.Failure)
	}

	if pause := f.run().RequeueAfter; pause < time.Minute {
		t.Errorf("it is looked at again in %s", pause)
	}
}

// A ticket that the cluster has not used when a second policy selects it is given back: it would keep the place of others.
func TestTicketInAConflictIsGivenBack(t *testing.T) {
	f := governed(t)
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.35.4" })
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.admit()
	f.second()
	f.advance(time.Minute)
	f.run()

	if last := f.turn().Last; last == nil || last.Result != v1alpha1.RolloutReturned {
		t.Errorf("the last turn: %+v", last)
	}
}
