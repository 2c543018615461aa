package plan

import (
	"errors"
	"slices"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// maxRefusals is the number of refusals after which an apply stops: after so many, the cause is not a single change.
const maxRefusals = 10

// refusals are Omni's refusals in one apply. They decide which steps do not go on because of them. The rest of the plan
// does.
//
//   - After the refusal of a resource of the whole cluster (the Cluster itself, its own patches, extensions, manifests
//     and health checks): nothing goes on.
//   - Of a machine set, or of its patches and extensions: nothing of that set and of the machines that the template
//     lists in it.
//   - Of a machine, or of its patches, extensions and kernel arguments: nothing of that machine, and no machine leaves
//     the set that the template lists it in.
//   - No set is torn down while a new one could not be created, or lacks a machine: the new one may replace it. A set without
//     any machine is new, too: Omni took it in an earlier run, and refuses its machines since.
//
// A teardown that has begun is finished, unless the whole cluster waits.
type refusals struct {
	all            bool
	sets, machines map[string]bool   // that do not go on
	keeps          map[string]bool   // sets that no machine leaves
	newSetMissing  bool              // a new set was not created, or lacks a machine
	newSets        map[string]bool   // sets that the plan creates, or that have no machine yet
	wanted         map[string]string // the set in which the template lists a machine
}

func newRefusals(plan *Plan) *refusals {
	r := &refusals{sets: map[string]bool{}, machines: map[string]bool{}, keeps: map[string]bool{}, newSets: map[string]bool{}, wanted: map[string]string{}}

	for _, set := range plan.Wanted {
		for _, machine := range set.Machines {
			r.wanted[machine] = set.ID
		}

		r.newSets[set.ID] = !hasMachines(plan.Live, set.ID)
	}

	for _, s := range plan.steps {
		if s.change.Type == omnires.MachineSetType && s.change.Action == ActionCreate {
			r.newSets[s.set] = true
		}
	}

	return r
}

// noteRefused records a step that Omni refused.
func (r *refusals) noteRefused(s step) {
	if s.set == "" && len(s.machines) == 0 {
		r.all = true
	}

	r.noteLeftOut(s)
}

// noteLeftOut records a step that was refused, or not tried because of a refusal.
func (r *refusals) noteLeftOut(s step) {
	isSet := s.change.Type == omnires.MachineSetType

	if isSet || len(s.machines) == 0 && s.set != "" {
		r.sets[s.set] = true
	}

	if isSet && s.change.Action == ActionCreate {
		r.newSetMissing = true
	}

	for _, machine := range s.machines {
		r.machines[machine] = true

		// The set lacks this machine, whether its node is a step of this plan or still waits for the machine to become free.
		if set := r.wanted[machine]; set != "" {
			r.keeps[set] = true
			r.newSetMissing = r.newSetMissing || r.newSets[set]
		}
	}
}

// stop reports whether a step must not go on.
func (r *refusals) stop(s step) bool {
	switch {
	case r.all:
		return true
	case s.change.TearingDown:
		return false
	case s.set != "" && r.sets[s.set]:
		return true
	}

	if slices.ContainsFunc(s.machines, func(machine string) bool { return r.machines[machine] || r.sets[r.wanted[machine]] }) {
		return true
	}

	return s.change.destroys() &&
		(r.keeps[s.set] || r.newSetMissing && s.change.Type == omnires.MachineSetType && s.change.Action == ActionDestroy)
}

// refusalOf returns the *ChangeError of a refused content; nil if the error is of another class.
func refusalOf(err error) *ChangeError {
	var failed *ChangeError
	if errors.As(err, &failed) && failed.Class == omni.ClassRefused {
		return failed
	}

	return nil
}
