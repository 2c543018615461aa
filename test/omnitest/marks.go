package omnitest

import (
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Marked returns a Cluster with a mark of that UID, and a foreign annotation.
func Marked(name, uid string) *omnires.Cluster {
	cluster := ClusterNamed(name)
	annotations := cluster.Metadata().Annotations()
	annotations.Set(v1alpha1.MarkOwnerUID, uid)
	annotations.Set(v1alpha1.MarkHub, "hub-1")
	annotations.Set(v1alpha1.MarkOwnerNamespace, "prod")
	annotations.Set(v1alpha1.MarkOwnerName, "demo")
	annotations.Set(v1alpha1.MarkManagementCluster, "hub")
	annotations.Set("kept", "yes")

	return cluster
}

// OfUID1 reports whether a mark has the UID uid-1.
func OfUID1(marks omni.Marks) bool { return marks.UID == "uid-1" }
