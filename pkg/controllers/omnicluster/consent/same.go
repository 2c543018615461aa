package consent

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// AllowSame reports whether two states of an object allow the same to be destroyed: what it applied
// once, what was approved, and of which cluster. They differ, with one UID and generation, after
// the storage was restored from an older snapshot and the documents were listed anew before the
// object was.
func AllowSame(a, b v1alpha1.OmniClusterStatus) bool {
	return a.OmniClusterID == b.OmniClusterID && a.Adopting == b.Adopting &&
		equality.Semantic.DeepEqual(a.AppliedMachineSets, b.AppliedMachineSets) &&
		equality.Semantic.DeepEqual(a.AppliedManifests, b.AppliedManifests) &&
		equality.Semantic.DeepEqual(approvals(a), approvals(b))
}
