package omnicluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// steps is more than a cluster needs to run.
const steps = 40

func isReady(cluster *v1alpha1.OmniCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady)
}

// upgradeStatus reports whether Omni has a KubernetesUpgradeStatus of the cluster.
func (f *fixture) upgradeStatus() bool {
	_, err := f.omni.Unchecked().Get(f.t.Context(), omni.NewKubernetesUpgradeStatus(testCluster).Metadata())

	return err == nil
}

// looked runs until the status shows what Omni says of the cluster now.
func (f *fixture) looked() *v1alpha1.OmniCluster {
	f.t.Helper()

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	copied := lease.Mirror().State()

	for _, pointer := range []resource.Pointer{
		omni.NewClusterStatus(testCluster).Metadata(), omni.NewLoadBalancerStatus(testCluster).Metadata(),
		omni.NewMachineSetStatus(omni.ControlPlanesResourceID(testCluster)).Metadata(),
		omni.NewKubernetesUpgradeStatus(testCluster).Metadata(), omni.NewClusterUUID(testCluster).Metadata(),
	} {
		f.eventually("the local copy of "+pointer.Type(), func() string {
			original, err := f.omni.Unchecked().Get(f.t.Context(), pointer)
			found, copyErr := copied.Get(f.t.Context(), pointer)

			if err != nil || copyErr != nil {
				if (err == nil) == (copyErr == nil) {
					return ""
				}

				return fmt.Sprint(err, copyErr)
			}

			return cmp.Diff(original.Metadata().Version().String(), found.Metadata().Version().String())
		})
	}

	f.quiet()

	return f.get()
}

// A new cluster is not Ready at the load balancer's first word, and says what it waits for; afterwards nothing makes it
// wait for that again: neither a restart, nor a status without the field, nor the loss of the evidence.
func TestNewClusterIsReadyWhenKubernetesAnswered(t *testing.T) {
	f := newFixtureWith(t, omnisim.Options{Manual: true}, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Synced", metav1.ConditionTrue, "")

	waited := false

	for step := 0; !isReady(f.get()); step++ {
		if step > steps {
			t.Fatalf("not Ready: %q", shown(f.get()))
		}

		f.omni.Step()

		cluster := f.looked()
		waited = waited || strings.Contains(message(cluster, "Ready"), "no KubernetesUpgradeStatus of this cluster")

		if isReady(cluster) && !f.upgradeStatus() {
			t.Fatal("Ready at the load balancer's first word")
		}
	}

	if !waited {
		t.Error("it never said what it waits for")
	}

	if f.get().Status.Starting {
		t.Error("it still starts")
	}

	pointer := omni.NewKubernetesUpgradeStatus(testCluster).Metadata()
	if err := f.omni.Unchecked().Destroy(t.Context(), pointer, state.WithDestroyOwner("KubernetesUpgradeStatusController")); err != nil {
		t.Fatal(err)
	}

	for name, change := range map[string]func(){"the evidence is gone": func() {}, "a restart": f.restart} {
		change()

		if !isReady(f.looked()) {
			t.Errorf("%s: %q", name, shown(f.get()))
		}
	}
}

// A cluster that has run before does not wait for the evidence again.
func TestRecordedClusterDoesNotStartAgain(t *testing.T) {
	f := newFixtureWith(t, omnisim.Options{Manual: true}, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Synced", metav1.ConditionTrue, "")

	for range 2 { // the UUID takes a step
		f.omni.Step()
	}

	cluster := f.looked()
	if cluster.Status.OmniClusterID == "" || !cluster.Status.Starting {
		t.Fatalf("a new cluster starts: %+v", cluster.Status)
	}

	cluster.Status.Starting = false
	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.restart()

	for step := 0; !isReady(f.looked()); step++ {
		if step > steps {
			t.Fatalf("not Ready: %q", shown(f.get()))
		}

		f.omni.Step()
	}

	if f.upgradeStatus() {
		t.Error("this test wants the load balancer's first word")
	}
}
