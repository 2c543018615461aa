package migrate

import "fmt"

// otherKind says what to do with an object of a kind that only the old operator has. Some lines of its releases have two more:
// both render a chart into a Secret that belongs to the object, and from there into the template of the OmniCluster. They have
// no finalizer. When one is deleted while that operator runs, its next sync is without the manifests, and Omni removes
// them from the workload cluster.
func otherKind(kind, name string) string {
	text := "this operator has no such kind: save what you need of it, then stop the old operator (scale its Deployment to 0), " +
		"and only then delete the object. Deleted while the old operator runs, it takes what it has rendered into the cluster's template along: " +
		"Omni removes that from the workload cluster"

	switch kind {
	case "OmniClusterAddon":
		return text + keepManifests(name+"-addon-manifest")
	case "OmniCilium":
		return text + ", which is without a network then" + keepManifests(name+"-cilium-manifest") +
			", and the patch disable-default-cni-for-cilium under its spec.patches"
	}

	return text
}

func keepManifests(secret string) string {
	return fmt.Sprintf(". Save the Secret %s, which goes with the object: its manifests have to be under spec.kubernetes.manifests "+
		"of the OmniCluster before the cluster is taken over", secret)
}
