package omnicluster

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// reportApplied records the documents whose content Omni has now.
func reportApplied(status *v1alpha1.OmniClusterStatus, documents *template.Documents, hash string) {
	status.TemplateHash = hash
	status.ControlPlaneRef = new(applied(documents.ControlPlane))
	status.WorkersRefs, status.MachineRefs = nil, nil

	for i := range documents.Workers {
		status.WorkersRefs = append(status.WorkersRefs, applied(&documents.Workers[i]))
	}

	for i := range documents.Machines {
		status.MachineRefs = append(status.MachineRefs, applied(&documents.Machines[i]))
	}
}

// reportPartly records the documents of which nothing is left to do, while something else of the cluster is. The others
// keep their earlier record, and so does the hash: Omni does not have all of the template.
func reportPartly(s *scope) {
	status := &s.cluster.Status
	before := slices.Concat(status.WorkersRefs, status.MachineRefs)

	if status.ControlPlaneRef != nil {
		before = append(before, *status.ControlPlaneRef)
	}

	status.ControlPlaneRef, status.WorkersRefs, status.MachineRefs = nil, nil, nil

	left := s.synced.Left()

	for _, part := range partsOf(s) {
		ref, had := stateBefore(before, part.document)
		if !slices.ContainsFunc(left, part.has) {
			ref, had = applied(part.document), true
		}

		switch {
		case !had:
		case part.kind == "OmniControlPlane":
			status.ControlPlaneRef = &ref
		case part.kind == "OmniWorkers":
			status.WorkersRefs = append(status.WorkersRefs, ref)
		default:
			status.MachineRefs = append(status.MachineRefs, ref)
		}
	}
}

func stateBefore(refs []v1alpha1.AppliedReference, document client.Object) (v1alpha1.AppliedReference, bool) {
	for _, ref := range refs {
		if ref.UID == string(document.GetUID()) {
			return ref, true
		}
	}

	return v1alpha1.AppliedReference{}, false
}

func applied(object client.Object) v1alpha1.AppliedReference {
	return v1alpha1.AppliedReference{Name: object.GetName(), UID: string(object.GetUID()), Generation: object.GetGeneration()}
}

// describedMachines returns the machines that an OmniMachine of the cluster describes.
func describedMachines(input template.Input) map[string]bool {
	described := map[string]bool{}
	for i := range input.Machines {
		described[input.Machines[i].EffectiveMachineID()] = true
	}

	return described
}
