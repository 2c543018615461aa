package export

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// takeOverSteps are the comments of a cluster's file: what it does as it is, and what to change when. They hold names of objects
// only: a name in Omni could end the comment.
func takeOverSteps(cluster *v1alpha1.OmniCluster) []string {
	object := "omnicluster " + cluster.Name
	if cluster.Namespace != "" {
		object += " -n " + cluster.Namespace
	}

	return []string{
		"OmniCluster " + cluster.Name + ", exported from Omni. Applied as it is, this file changes nothing in Omni, and deleting it destroys nothing there.",
		fmt.Sprintf("1. Apply it to the namespace of OmniConnection %s, which is not in this file.", cluster.Spec.ConnectionRef.Name),
		"2. Read the plan: kubectl get " + object + " -o jsonpath='{.status.plan.diff}'",
		"   If it has more than the owner's mark of the Cluster, correct the documents first.",
		"3. Change changePolicy to Apply, and apply the file again: that takes the cluster over.",
		"   It is over when this prints nothing: kubectl get " + object + " -o jsonpath='{.status.adopting}'",
		"4. Leave deletePolicy.orphan as it is, or change it to false: from then on deleting the OmniCluster destroys the cluster in Omni.",
	}
}

// connectionNote are the comments of the connection's file.
func connectionNote(options Options) []string {
	return []string{
		fmt.Sprintf("OmniConnection %s. If the namespace has one of this name, do not apply this: it replaces the endpoint and the Secret for every",
			options.Connection),
		fmt.Sprintf("cluster of that connection. The key belongs into Secret %s, which is not in this file.", options.Secret),
	}
}
