package rollout_test

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// BenchmarkEvaluate is a look at a thousand clusters that wait for their window.
func BenchmarkEvaluate(b *testing.B) {
	object := policyOf(one(v1alpha1.RolloutStage{Windows: []v1alpha1.MaintenanceWindow{
		{Days: []v1alpha1.Weekday{v1alpha1.Saturday, v1alpha1.Sunday}, Start: "02:00", Duration: "4h", TimeZone: "Europe/Berlin"},
	}}), func(p *v1alpha1.OmniRolloutPolicy) {
		p.Spec.Freezes = []v1alpha1.RolloutFreeze{{Name: "f", From: *seconds(noon.Add(30 * 24 * time.Hour)), Until: *seconds(noon.Add(60 * 24 * time.Hour))}}
	})
	policy, members := read(b, object), many(1000, 0, wants(v2))

	for b.Loop() {
		policy.Evaluate(members, noon)
	}
}
