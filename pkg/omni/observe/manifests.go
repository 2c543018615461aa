package observe

import (
	"cmp"
	"fmt"
	"strings"

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

// Requests counts the machines that Omni asks an infrastructure provider for, because the class of a set is provisioned, and
// that do not belong to the cluster yet.
type Requests struct {
	// Provider is the ID of the provider, of the one that fails if there are several; bounded.
	Provider string
	// Pending, Provisioning and Provisioned count the machines by what the provider has done so far. Failing are those that it
	// has an error with, whether or not it goes on trying.
	Pending, Provisioning, Provisioned, Failing int
	// FirstFailing is the ID of the first machine request with an error, bounded. The error may quote what the machine gets to
	// join Omni, or an answer of the hypervisor, with credentials, so it is not kept.
	FirstFailing string
}

func (r *Requests) add(found *omnires.ClusterMachineRequestStatus) {
	spec, count := found.TypedSpec().Value, &r.Pending

	switch stage := spec.GetStage(); {
	case stage == specs.ClusterMachineRequestStatusSpec_DEPROVISIONING:
		return
	case stage == specs.ClusterMachineRequestStatusSpec_PROVISIONED:
		count = &r.Provisioned
	case stage == specs.ClusterMachineRequestStatusSpec_FAILED, spec.GetError() != "":
		count = &r.Failing
	case stage == specs.ClusterMachineRequestStatusSpec_PROVISIONING:
		count = &r.Provisioning
	}

	*count++

	if count == &r.Failing && r.FirstFailing == "" {
		r.FirstFailing, r.Provider = detail(found.Metadata().ID()), ""
	}

	r.Provider = cmp.Or(r.Provider, detail(spec.GetProviderId()))
}

// readRequests adds to the sets what providers do for them. The request of a machine that belongs to the cluster tells nothing
// more; a mirror does not have it.
func (o *observer) readRequests() {
	sets := map[string]*Requests{}
	for i := range o.status.MachineSets {
		sets[o.status.MachineSets[i].ID] = &o.status.MachineSets[i].Requests
	}

	each(o, func(found *omnires.ClusterMachineRequestStatus) {
		set, _ := found.Metadata().Labels().Get(omnires.LabelMachineSet)
		_, inUse := found.Metadata().Labels().Get(omnires.LabelMachineRequestInUse)

		if requests := sets[set]; requests != nil && !inUse {
			requests.add(found)
		}
	})
}

// classHint says what the provider does for a set with a class that lacks machines, or what to check: nothing else shows that a
// class has no free machines.
func classHint(set MachineSet) string {
	requests := set.Requests

	var does []string

	for _, one := range []struct {
		count int
		text  string
	}{
		{requests.Failing, "fails to provision %d"},
		{requests.Provisioning, "is provisioning %d"},
		{requests.Pending, "has not started on %d"},
		{requests.Provisioned, "has provisioned %d that do not belong to the cluster yet"},
	} {
		if one.count > 0 {
			does = append(does, fmt.Sprintf(one.text, one.count))
		}
	}

	if len(does) == 0 {
		return fmt.Sprintf("check that machine class %q has free machines", set.Class)
	}

	return fmt.Sprintf("the provider %q %s%s", requests.Provider, strings.Join(does, ", "), providerHint(requests))
}

// providerHint says where the provider's error is, or what may be wrong if there is none.
func providerHint(requests Requests) string {
	switch {
	case requests.Failing > 0:
		return fmt.Sprintf("; `omnictl get clustermachinerequeststatus %s -o yaml` has the error", requests.FirstFailing)
	case requests.Pending > 0:
		return "; if this lasts, check that the provider runs"
	case requests.Provisioning == 0:
		return "; if this lasts, check that the machines boot and reach Omni"
	default:
		return ""
	}
}
