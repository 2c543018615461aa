package omnicluster

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// reportApplied records the documents of which nothing is left to do. The others keep their earlier record.
func reportApplied(s *scope) {
	status := &s.cluster.Status
	before := slices.Concat(status.WorkersRefs, status.MachineRefs)

	if status.ControlPlaneRef != nil {
		before = append(before, *status.ControlPlaneRef)
	}

	status.ControlPlaneRef, status.WorkersRefs, status.MachineRefs = nil, nil, nil

	left := s.synced.unproven()

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

// unproven returns the changes that are not done, and those of this run if the local copy does not show them yet. What the
// status says of Omni is read from the copy: with the new generation of a document beside it, that would count as the state
// of this generation.
func (s *synced) unproven() []plan.Change {
	var changes []plan.Change

	if !s.complete {
		changes = s.Left()
	}

	if s.unshown != nil {
		changes = append(changes, s.changed()...)
	}

	return changes
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
