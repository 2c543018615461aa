package omnicluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func valid() *omni.OmniCluster {
	return &omni.OmniCluster{Spec: omni.OmniClusterSpec{
		ConnectionRef: omni.LocalObjectReference{Name: "main"},
		ClusterName:   "production",
		Kubernetes:    omni.OmniClusterKubernetes{Version: "v1.34.1"},
		Talos:         omni.OmniClusterTalos{Version: "v1.11.2"},
		ChangePolicy:  omni.ChangePolicyApply,
		SyncInterval:  "5m",
	}}
}

func invalid() *omni.OmniCluster {
	o := valid()
	o.Spec.Talos.Version = "eleven"

	return o
}

// sets are what Omni says of a cluster with a control plane and two worker sets.
func sets() *omni.OmniClusterRemoteStatus {
	return &omni.OmniClusterRemoteStatus{MachineSets: []omni.MachineSetStatus{
		{Name: "control-planes", Machines: omni.MachineCounts{Healthy: 2, Requested: 3}},
		{Name: "small", Machines: omni.MachineCounts{Healthy: 4, Requested: 4}},
		{Name: "large", Machines: omni.MachineCounts{Healthy: 1, Requested: 2}},
	}}
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*omni.OmniCluster]{
		Descriptor:   Descriptor(false),
		Valid:        valid,
		Invalid:      invalid,
		Change:       func(o *omni.OmniCluster) { o.Spec.Kubernetes.Version = "v1.34.2" },
		BadChange:    func(o *omni.OmniCluster) { o.Spec.ClusterName = "staging" },
		EmptyList:    func(o *omni.OmniCluster) { o.Spec.Patches = []omni.Patch{} },
		OmitsNothing: func(o *omni.OmniCluster) { o.Spec.SystemExtensions = []string{} },
		Rows: []kittest.Row[*omni.OmniCluster]{
			{
				Name:   "new",
				Change: func(*omni.OmniCluster) {},
				Cells:  []any{"Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "<none>"},
			},
			{
				Name: "waiting with a plan",
				Change: func(o *omni.OmniCluster) {
					o.Status.Conditions = []metav1.Condition{{
						Type: "Ready", Status: "False", Reason: "NotRunning", Message: "1 of 3 machines is missing",
					}}
					o.Status.Omni = sets()
					o.Status.Plan = &omni.OmniClusterPlan{Creates: 1, Updates: 2, Destroys: 3}
				},
				Cells: []any{
					"False", "NotRunning", "v1.34.1", "v1.11.2", "2/3", "5/6", "main", "+1 ~2 -3",
					"1 of 3 machines is missing",
				},
			},
			{
				Name: "with a plan that takes machines away",
				Change: func(o *omni.OmniCluster) {
					o.Status.Plan = &omni.OmniClusterPlan{Updates: 1, Destroys: 3, Destructive: 2}
				},
				Cells: []any{"Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "+0 ~1 -3 !2", "<none>"},
			},
			{
				Name: "without a plan, but with an approval of an earlier one",
				Change: func(o *omni.OmniCluster) {
					o.Status.Plan = &omni.OmniClusterPlan{Approved: []omni.ApprovedChange{{ID: "demo-w"}}}
				},
				Cells: []any{"Unknown", "<none>", "v1.34.1", "v1.11.2", "<none>", "<none>", "main", "<none>", "<none>"},
			},
		},
	})
}
