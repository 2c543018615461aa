package omnirolloutpolicy

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valid() *v1alpha1.OmniRolloutPolicy {
	return &v1alpha1.OmniRolloutPolicy{Spec: v1alpha1.OmniRolloutPolicySpec{
		ClusterSelector: &v1alpha1.ClusterSelector{},
		Stages: []v1alpha1.RolloutStage{
			{Name: "canary", ClusterSelector: &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": "canary"}}},
			{Name: "prod"},
		},
		ArrivalTime: "15m", ProgressDeadline: "2h",
	}}
}

func invalid() *v1alpha1.OmniRolloutPolicy {
	o := valid()
	o.Spec.Stages[1].ClusterSelector = &v1alpha1.ClusterSelector{}

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniRolloutPolicy]{
		Descriptor: Descriptor(now, clusters{}),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniRolloutPolicy) { o.Spec.Hold = true },
		BadChange:  func(o *v1alpha1.OmniRolloutPolicy) { o.Spec.MaxFailed = 101 },
		EmptyList:  func(o *v1alpha1.OmniRolloutPolicy) { o.Spec.Freezes = []v1alpha1.RolloutFreeze{} },
		Rows: []kittest.Row[*v1alpha1.OmniRolloutPolicy]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniRolloutPolicy) {},
				Cells:  []any{"False", "Unknown", "<none>", "canary,prod", int64(0), int64(0), int64(0), "<none>", "<none>"},
			},
			{
				Name:   "on hold",
				Change: func(o *v1alpha1.OmniRolloutPolicy) { o.Spec.Hold = true },
				Cells:  []any{"True", "Unknown", "<none>", "canary,prod", int64(0), int64(0), int64(0), "<none>", "<none>"},
			},
			{
				Name: "at work",
				Change: func(o *v1alpha1.OmniRolloutPolicy) {
					soon, later := metav1.NewTime(now().Add(90*time.Minute)), metav1.NewTime(now().Add(24*time.Hour))
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "InForce", Message: "in force"}}
					o.Status.Held, o.Status.FailedCount = 7, 1
					o.Status.Admitted = []v1alpha1.RolloutTicket{{Cluster: "a"}, {Cluster: "b"}}
					o.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", NextChange: &later}, {Name: "prod", NextChange: &soon}}
				},
				Cells: []any{"False", "True", "InForce", "canary,prod", int64(7), int64(2), int64(1), "in 90m", "in force"},
			},
		},
	})
}
