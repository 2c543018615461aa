package omni

import omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

// testKeys are the operator's own.
//
//nolint:gochecknoglobals // a constant table
var testKeys = MarkKeys{
	UID:               "omni.texashpc.com/owner-uid",
	Hub:               "omni.texashpc.com/hub-id",
	Namespace:         "omni.texashpc.com/owner-namespace",
	Name:              "omni.texashpc.com/owner-name",
	ManagementCluster: "omni.texashpc.com/management-cluster",
}

func marked(name, uid string) *omnires.Cluster {
	cluster := clusterNamed(name)
	annotations := cluster.Metadata().Annotations()
	annotations.Set(testKeys.UID, uid)
	annotations.Set(testKeys.Hub, "hub-1")
	annotations.Set(testKeys.Namespace, "prod")
	annotations.Set(testKeys.Name, "demo")
	annotations.Set(testKeys.ManagementCluster, "hub")
	annotations.Set("kept", "yes")

	return cluster
}

func ofUID1(marks Marks) bool { return marks.UID == "uid-1" }
