package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func valid() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{
		ConnectionRef: v1alpha1.LocalObjectReference{Name: "main"},
		ClusterName:   "production",
		Kubernetes:    v1alpha1.OmniClusterKubernetes{Version: "v1.34.1"},
		Talos:         v1alpha1.OmniClusterTalos{Version: "v1.11.2"},
		ChangePolicy:  v1alpha1.ChangePolicyApply,
		SyncInterval:  "5m",
	}}
}

func invalid() *v1alpha1.OmniCluster {
	o := valid()
	o.Spec.Talos.Version = "eleven"

	return o
}

// sets are what Omni says of a cluster with a control plane and two worker sets.
func sets() *v1alpha1.OmniClusterRemoteStatus {
	return &v1alpha1.OmniClusterRemoteStatus{MachineSets: []v1alpha1.MachineSetStatus{
		{Name: "control-planes", Machines: v1alpha1.MachineCounts{Healthy: 2, Requested: 3}},
		{Name: "small", Machines: v1alpha1.MachineCounts{Healthy: 4, Requested: 4}},
		{Name: "large", Machines: v1alpha1.MachineCounts{Healthy: 1, Requested: 2}},
	}}
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniCluster]{
		Descriptor: Descriptor(false),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniCluster) { o.Spec.Kubernetes.Version = "v1.34.2" },
		BadChange:  func(o *v1alpha1.OmniCluster) { o.Spec.ClusterName = "staging" },
		EmptyList:  func(o *v1alpha1.OmniCluster) { o.Spec.Patches = []v1alpha1.Patch{} },
		Rows: []kittest.Row[*v1alpha1.OmniCluster]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniCluster) {},
				Cells:  []any{"False", "Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "<none>", "<none>"},
			},
			{
				Name: "waiting with a plan",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Status.Conditions = []metav1.Condition{{
						Type: "Ready", Status: "False", Reason: "NotRunning", Message: "1 of 3 machines is missing",
					}}
					o.Status.Omni = sets()
					o.Status.Plan = &v1alpha1.OmniClusterPlan{Creates: 1, Updates: 2, Destroys: 3}
				},
				Cells: []any{"False", "False", "NotRunning", "v1.34.1", "v1.11.2", "2/3", "5/6", "main", "+1 ~2 -3", "<none>", "1 of 3 machines is missing"},
			},
			{
				Name: "suspended while it was well",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Spec.Suspend = true
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Running", Message: "Omni runs the cluster"}}
				},
				Cells: []any{"True", "True", "Running", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "<none>", "Omni runs the cluster"},
			},
			{
				Name: "other versions run",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{KubernetesVersion: "v1.33.5", TalosVersion: "v1.11.2"}
				},
				Cells: []any{"False", "Unknown", "<none>", "v1.33.5->v1.34.1", "v1.11.2", "0/0", "0/0", "main", "<none>", "<none>", "<none>"},
			},
			{
				Name: "with a plan that takes machines away",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Status.Plan = &v1alpha1.OmniClusterPlan{Updates: 1, Destroys: 3, Destructive: 2}
				},
				Cells: []any{"False", "Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "+0 ~1 -3 !2", "<none>", "<none>"},
			},
			{
				Name: "with changes that wait for a window",
				Change: func(o *v1alpha1.OmniCluster) {
					opens := metav1.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
					o.Status.Plan = &v1alpha1.OmniClusterPlan{Updates: 3, Held: 2}
					o.Status.Rollout = &v1alpha1.OmniClusterRollout{Reason: "OutsideWindow", NotBefore: &opens}
				},
				Cells: []any{"False", "Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "+0 ~3 -0 h2", "Sat 2026-11-28 01:00 UTC", "<none>"},
			},
			{
				Name: "with changes that wait for something else",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Status.Rollout = &v1alpha1.OmniClusterRollout{Reason: "WaitingForStage"}
				},
				Cells: []any{"False", "Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "WaitingForStage", "<none>"},
			},
			{
				Name: "without a plan, but with an approval of an earlier one",
				Change: func(o *v1alpha1.OmniCluster) {
					o.Status.Plan = &v1alpha1.OmniClusterPlan{Approved: []v1alpha1.ApprovedChange{{ID: "demo-w"}}}
				},
				Cells: []any{"False", "Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "<none>", "<none>"},
			},
		},
	})
}
