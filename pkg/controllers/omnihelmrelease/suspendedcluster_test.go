package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// inCluster names the OmniCluster of the release, as suspendCluster does.
func inCluster(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "cluster-01" }

// suspendCluster makes an OmniCluster that is suspended, and says so to who opens it.
func (f *fixture) suspendCluster() {
	f.t.Helper()

	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cluster-01"}, Spec: v1alpha1.OmniClusterSpec{Suspend: true}}
	if err := f.client.Create(f.t.Context(), cluster); err != nil {
		f.t.Fatal(err)
	}

	f.access.suspended = true
}

// resumeCluster ends that.
func (f *fixture) resumeCluster() {
	f.t.Helper()

	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cluster-01"}}
	if err := f.client.Delete(f.t.Context(), cluster); err != nil {
		f.t.Fatal(err)
	}

	f.access.suspended = false
}

// A release of a suspended cluster begins nothing, waits with a reason of its own, and goes on when the cluster is resumed.
func TestASuspendedClusterHoldsItsReleases(t *testing.T) {
	for name, test := range map[string]struct {
		before func(f *fixture) // with the cluster as it was
		after  func(f *fixture) // with the cluster suspended
		done   []helm.Action    // before it is resumed
		want   helm.Action      // then
	}{
		"install": {want: helm.ActionInstall},
		"upgrade": {
			before: (*fixture).settle,
			after:  func(f *fixture) { f.edit(withValues(`{"word":"new"}`)) },
			done:   []helm.Action{helm.ActionInstall}, want: helm.ActionUpgrade,
		},
		"rollback": {
			before: func(f *fixture) {
				f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.RollbackOnFailure, r.Spec.Retries = new(true), new(int32(0)) })
				f.settle()
				f.cluster.fail = &helm.Error{Reason: helm.ReasonFailed, Message: "no"}
				f.edit(withValues(`{"word":"new"}`))
				f.run()
				f.run()
			},
			done: []helm.Action{helm.ActionInstall, helm.ActionUpgrade}, want: helm.ActionRollback,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, inCluster)
			if test.before != nil {
				test.before(f)
			}

			f.suspendCluster()

			if test.after != nil {
				test.after(f)
			}

			f.pass(time.Hour)
			f.settle()
			f.wantActions(test.done...)

			message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterSuspended)
			if !strings.Contains(message, `OmniCluster "cluster-01" is suspended: `+string(test.want)) || !strings.Contains(message, "kubectl omni resume cluster-01") {
				t.Error(message)
			}

			f.want(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonClusterSuspended)

			f.cluster.fail = nil
			f.resumeCluster()
			f.settle()

			if got := f.cluster.actions(); len(got) <= len(test.done) || got[len(test.done)] != test.want {
				t.Errorf("actions %v, want %s after %v", got, test.want, test.done)
			}
		})
	}
}

// A deletion uninstalls the release of a suspended cluster.
func TestASuspendedClusterDoesNotHoldAnUninstall(t *testing.T) {
	f := newFixture(t, inCluster)
	f.settle()
	f.suspendCluster()
	f.remove()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUninstall)
}

// Drift in a suspended cluster is reported, and corrected when the cluster is resumed.
func TestDriftInASuspendedCluster(t *testing.T) {
	f := newFixture(t, inCluster, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect })
	f.settle()
	f.suspendCluster()
	f.cluster.differences = []drift.Difference{{Object: drift.Object{Kind: "ConfigMap", Name: "app"}, Paths: []string{"/data/a"}}}
	f.pass(10 * time.Minute)
	f.settle()

	if message := f.want(v1alpha1.ConditionDrifted, yes, v1alpha1.ReasonDriftFound); !strings.Contains(message, "not corrected while") {
		t.Error(message)
	}

	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDriftFound)
	f.wantActions(helm.ActionInstall)
	f.resumeCluster()
	f.settle()
	f.wantActions(helm.ActionInstall, actionCorrect)
}

// Whoever suspends a cluster and edits its release in one commit is not overtaken by an action that waits for its turn, nor by a
// cache that sees the edit first.
func TestAClusterIsSuspendedBeforeAnActionChangesAnything(t *testing.T) {
	f := newFixture(t, inCluster)
	f.run() // writes what it will attempt

	free := f.waitsForRoom()

	f.said()
	f.suspendCluster()
	free()
	f.wantWithdrawn()
	f.wantActions()
	f.settle()
	f.wantActions()
	f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterSuspended)
}
