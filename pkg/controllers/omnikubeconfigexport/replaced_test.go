package omnikubeconfigexport

import (
	"cmp"
	"testing"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// replace writes an ID into the OmniCluster's status, or leaves the one that is there, and a condition Stalled, or none.
func (f *fixture) replace(id, reason string) {
	f.t.Helper()

	cluster := &v1alpha1.OmniCluster{}
	f.must(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.OmniClusterID, cluster.Status.Conditions = cmp.Or(id, cluster.Status.OmniClusterID), nil

	if reason != "" {
		cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason}}
	}

	f.must(f.client.Status().Update(f.t.Context(), cluster))
}

// inspected is how often Omni was asked whose the cluster is.
func (f *fixture) inspected() int {
	return f.omni.Requests()[omnisim.Request{Method: "Get", Type: omni.ClusterType}]
}

// expectHeld expects that the export is Stalled, or else Reconciling.
func (f *fixture) expectHeld(stalls bool, texts ...string) {
	f.t.Helper()
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonRemoteClusterReplaced, texts...)

	conditions := f.get().Status.Conditions
	if apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) != stalls || apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReconciling) == stalls {
		f.t.Errorf("want stalls %t: %+v", stalls, conditions)
	}
}

// The cluster in Omni is another one than the OmniCluster knows. If that waits for a person, so does the export, and it does
// not ask Omni until then; else the status is about to follow.
func TestClusterThatWasReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		reason string // of the OmniCluster's condition Stalled; empty: it is not
		asks   bool   // Omni
	}{
		"it waits for a person":                      {v1alpha1.ReasonRemoteClusterReplaced, false},
		"it waits for a person for another reason":   {v1alpha1.ReasonTemplateInvalid, true},
		"it has not seen that yet, or it is learned": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.replace("the-former", test.reason)

			before := f.inspected()

			if test.reason == "" {
				f.expectHeld(false, "waits for its status")
			} else {
				f.expectHeld(true, `"cluster-01"`, "See the conditions of the OmniCluster")
			}

			if asked := f.inspected() > before; asked != test.asks || f.asked() != 0 || f.secret("target") != nil {
				t.Errorf("Omni was asked %t, for %d kubeconfigs", asked, f.asked())
			}

			f.replace("", "")
			f.learnID("production")
			f.ready()
		})
	}
}

// An OmniCluster that is suspended is not Stalled, and its status does not follow either.
func TestSuspendedClusterThatWasReplaced(t *testing.T) {
	f := newFixture(t)
	f.replace("the-former", "")

	cluster := &v1alpha1.OmniCluster{}
	f.must(f.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRemoteClusterReplaced}}
	f.must(f.client.Status().Update(t.Context(), cluster))

	before := f.inspected()
	f.expectHeld(true, "See the conditions of the OmniCluster")

	if f.inspected() > before {
		t.Error("Omni was asked")
	}
}

// A kubeconfig that is still valid stays, and so does one that has expired; then nothing is asked for again and again.
func TestExpiredInAClusterThatWasReplaced(t *testing.T) {
	f := newFixture(t)
	f.ready()

	status := f.get().Status
	f.replace("", v1alpha1.ReasonRemoteClusterReplaced)
	f.ready()

	f.now = status.ExpirationTime.Time
	before := f.inspected()
	f.expectHeld(true)

	if f.inspected() > before || f.secret("target") == nil || f.get().Status.KubeconfigHash != status.KubeconfigHash {
		t.Error("Omni was asked, or the old Secret or status was not kept")
	}
}
