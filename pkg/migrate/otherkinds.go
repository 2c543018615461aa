package migrate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// otherKind says what to do with an object of a kind that only the old operator has. Some lines of its releases have two more:
// both render a chart into a Secret that belongs to the object, and from there into the template of the OmniCluster. They have
// no finalizer. When one is deleted while that operator runs, its next sync is without the manifests, and Omni removes
// them from the workload cluster.
func otherKind(kind, name string) string {
	text := "this operator has no such kind: save what you need of it, then stop the old operator (scale its Deployment to 0), " +
		"and only then delete the object. Deleted while the old operator runs, it takes what it has rendered into the cluster's template along: " +
		"Omni removes that from the workload cluster"

	switch kind {
	case addonKind:
		return text + keepManifests(name+"-addon-manifest")
	case ciliumKind:
		return text + ", which is without a network then" + keepManifests(name+"-cilium-manifest") +
			", and the patch disable-default-cni-for-cilium under its spec.patches"
	}

	return text
}

func keepManifests(secret string) string {
	return fmt.Sprintf(". Save the Secret %s, which goes with the object: its manifests have to be under spec.kubernetes.manifests "+
		"of the OmniCluster before the cluster is taken over", secret)
}

// beforeItRuns says what has to be there before the old operator runs again, if it has kinds that only it has. Their objects
// were deleted for the migration, as otherKind says. The next sync of an operator that does not find them takes what they
// had rendered out of the workload clusters. Empty if there are no such kinds.
func beforeItRuns(s *state) string {
	var others []string

	for i := range s.Definitions {
		kind, _, _ := unstructured.NestedString(s.Definitions[i].Object, "spec", "names", "kind")
		if _, known := kindNamed(kind); !known {
			others = append(others, kind)
		}
	}

	if len(others) == 0 {
		return ""
	}

	return fmt.Sprintf("If you deleted some for the migration, apply the saved %s objects first, before the old operator runs again: "+
		"without them its next sync takes what they had rendered out of the workload clusters", strings.Join(others, " and "))
}
