package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// newUnderPolicy is a fixture with the documents of a cluster that a policy selects from the beginning.
func newUnderPolicy(t *testing.T, class string) *fixture {
	t.Helper()

	f := newFixture(t, newCluster(), newWorkers("w", class, 2))
	f.govern()
	f.create(newControlPlane("cp", f.machines[0]))

	return f
}

// askFor asks for a version, without a ticket for it.
func (f *fixture) askFor(version string) {
	f.t.Helper()
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = version })
}

// The run that finds a new cluster Ready is the last one before Omni goes away. The cluster was Ready once all the same.
func TestOmniGoesAwayRightAfterAClusterIsReady(t *testing.T) {
	f := newUnderPolicy(t, machineClass)
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
	f.loseOmni(false)
	f.advance(time.Minute) // longer than a restart of Omni
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMirrorNotSynced)
	f.askFor("v1.36.1")

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.quiet()

	if got := f.asked(); got != "1.35.1" {
		t.Errorf("Omni was told to run %s", got)
	}
}

// A cluster that runs in Omni, and of which Omni has refused a part from the beginning, was never Ready: its changes are
// free, because one of them may be what it lacks.
func TestClusterThatWasNeverReadyIsFree(t *testing.T) {
	f := newUnderPolicy(t, "none-of-this-name")
	f.until("Stalled", metav1.ConditionTrue, "Refused")
	f.untilWell(true)
	f.quiet()
	f.askFor("v1.36.1")
	f.untilWritten("1.36.1")

	if f.turn().Governed {
		t.Error("it waits for its turn")
	}
}
