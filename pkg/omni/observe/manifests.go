package observe

import (
	"fmt"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Manifests is what Omni reports about the Kubernetes objects that it applies to a cluster.
type Manifests struct {
	// Total is how many objects Omni counts, and OutOfSync how many of them it has yet to apply or to remove.
	Total, OutOfSync int
	// Failed is true if Omni has an error. Its text may quote the objects, with what came from Secrets, so it is not kept.
	Failed bool
	// Pending are the objects that are not applied yet, Deleting those that are not removed yet.
	Pending, Deleting Objects
}

// Objects is a number of Kubernetes objects, of which one is named.
type Objects struct {
	// Count is how many there are.
	Count int
	// First is the first of them by its text, such as "Deployment apps/web"; bounded.
	First string
}

func (o *Objects) add(manifest *specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus) {
	name := manifest.GetKind() + " " + manifest.GetName()
	if manifest.GetNamespace() != "" {
		name = manifest.GetKind() + " " + manifest.GetNamespace() + "/" + manifest.GetName()
	}

	if o.Count++; o.Count == 1 || name < o.First {
		o.First = name
	}
}

func (o *observer) readManifests() {
	manifests := &o.status.Manifests

	read(o, o.cluster, func(found *omnires.ClusterKubernetesManifestsStatus) {
		spec := found.TypedSpec().Value
		manifests.Total, manifests.OutOfSync = int(spec.GetTotal()), int(spec.GetOutOfSync())
		manifests.Failed = spec.GetLastError() != ""

		for _, group := range spec.GetGroups() {
			leaves := group.GetPhase() == specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_DELETING

			for _, manifest := range group.GetManifests() {
				switch phase := manifest.GetPhase(); {
				case leaves, phase == specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_DELETING:
					manifests.Deleting.add(manifest)
				case phase != specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_APPLIED:
					manifests.Pending.add(manifest)
				}
			}
		}

		manifests.Pending.First, manifests.Deleting.First = detail(manifests.Pending.First), detail(manifests.Deleting.First)
	})
}

// judgeManifests says what Omni has not applied, or not removed. Its error may be about objects that the cluster has, and then
// nothing is out of sync.
func judgeManifests(s Status) (reason, message string) {
	manifests := s.Manifests
	if manifests.OutOfSync == 0 && !manifests.Failed {
		return "", ""
	}

	message = "Omni cannot apply the Kubernetes manifests of the cluster"
	if manifests.OutOfSync > 0 {
		message = fmt.Sprintf("%d of %d Kubernetes manifests are not in effect", manifests.OutOfSync, manifests.Total)
	}

	if manifests.Pending.Count > 0 {
		message += "; not applied: " + firstOf(manifests.Pending.First, manifests.Pending.Count)
	}

	if manifests.Deleting.Count > 0 {
		message += "; not removed: " + firstOf(manifests.Deleting.First, manifests.Deleting.Count)
	}

	return ReasonManifestsNotApplied, message + manifestsHint(s)
}

// manifestsHint says where Omni's error is, or what may be wrong if there is none.
func manifestsHint(s Status) string {
	switch {
	case s.Manifests.Failed:
		return fmt.Sprintf("; `omnictl get clusterkubernetesmanifestsstatus %s -o yaml` has Omni's error (lasterror)", s.Name)
	case s.Manifests.Pending.Count > 0:
		return "; if this lasts, the cluster may not know a kind, because its CustomResourceDefinition is missing"
	default:
		return "; if this lasts, look in the cluster what keeps the objects, such as their finalizers"
	}
}
