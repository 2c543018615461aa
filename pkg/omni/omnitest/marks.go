package omnitest

import (
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// TestKeys are the keys that the operator uses.
var TestKeys = omni.MarkKeys{
	UID:               "omni.texashpc.com/owner-uid",
	Hub:               "omni.texashpc.com/hub-id",
	Namespace:         "omni.texashpc.com/owner-namespace",
	Name:              "omni.texashpc.com/owner-name",
	ManagementCluster: "omni.texashpc.com/management-cluster",
}

// Marked returns a Cluster with a mark of that UID, and a foreign annotation.
func Marked(name, uid string) *omnires.Cluster {
	cluster := ClusterNamed(name)
	annotations := cluster.Metadata().Annotations()
	annotations.Set(TestKeys.UID, uid)
	annotations.Set(TestKeys.Hub, "hub-1")
	annotations.Set(TestKeys.Namespace, "prod")
	annotations.Set(TestKeys.Name, "demo")
	annotations.Set(TestKeys.ManagementCluster, "hub")
	annotations.Set("kept", "yes")

	return cluster
}

// OfUID1 reports whether a mark has the UID uid-1.
func OfUID1(marks omni.Marks) bool { return marks.UID == "uid-1" }
