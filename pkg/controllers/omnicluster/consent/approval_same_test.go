package consent

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// What a cached object allows to be destroyed counts only if the stored one allows it, too.
func TestAllowSame(t *testing.T) {
	status := func(change func(*v1alpha1.OmniClusterStatus)) v1alpha1.OmniClusterStatus {
		s := v1alpha1.OmniClusterStatus{OmniClusterID: "id", AppliedMachineSets: []v1alpha1.AppliedMachineSet{{ID: "c-w", Size: "pool/2"}}}
		change(&s)

		return s
	}
	stored := status(func(*v1alpha1.OmniClusterStatus) {})

	for name, tc := range map[string]struct {
		cached v1alpha1.OmniClusterStatus
		same   bool
	}{
		"the same": {status(func(s *v1alpha1.OmniClusterStatus) { s.Plan = &v1alpha1.OmniClusterPlan{Destroys: 1} }), true},
		"a set more": {status(func(s *v1alpha1.OmniClusterStatus) {
			s.AppliedMachineSets = append(s.AppliedMachineSets, v1alpha1.AppliedMachineSet{ID: "c-later"})
		}), false},
		"a set that was made again": {status(func(s *v1alpha1.OmniClusterStatus) { s.AppliedTimes = map[string]metav1.Time{"c-w": storedAt(1)} }), false},
		"another size":              {status(func(s *v1alpha1.OmniClusterStatus) { s.AppliedMachineSets[0].Size = "pool/3" }), false},
		"an approval more": {status(func(s *v1alpha1.OmniClusterStatus) {
			s.Plan = &v1alpha1.OmniClusterPlan{Approved: []v1alpha1.ApprovedChange{{ID: "c-w"}}}
		}), false},
		"a manifest group more":        {status(func(s *v1alpha1.OmniClusterStatus) { s.AppliedManifests = []string{"200-cluster-c-a"} }), false},
		"another cluster":              {status(func(s *v1alpha1.OmniClusterStatus) { s.OmniClusterID = "other" }), false},
		"an approval that is not used": {status(func(s *v1alpha1.OmniClusterStatus) { s.UsedApproval = "hash" }), false},
		"adopting":                     {status(func(s *v1alpha1.OmniClusterStatus) { s.Adopting = true }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AllowSame(stored, tc.cached); got != tc.same {
				t.Errorf("got %v, want %v", got, tc.same)
			}
		})
	}
}
