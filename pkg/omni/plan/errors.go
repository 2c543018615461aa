package plan

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// CollisionError names a resource of the template that another cluster, or another part of this one, already uses. It is
// ErrCollision.
type CollisionError struct {
	// Type is the COSI resource type, such as "MachineSetNodes.omni.sidero.dev".
	Type string
	// ID is the resource's ID; for a MachineSetNode the machine's UUID.
	ID string
	// Cluster is the Omni cluster that has it; empty if the resource names none.
	Cluster string
	// Allocated is true if Omni itself allocated the machine through a machine class.
	Allocated bool
	// Here says, if it is this very cluster, what of it uses the resource, and what to do; else empty.
	Here string
	// Leaving is true if that cluster is being torn down, and Gone if Omni has no cluster of that name (any more).
	Leaving, Gone bool
}

// Error implements error.
func (e *CollisionError) Error() string {
	if e.Here != "" {
		return fmt.Sprintf("%s %q is %s by %s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Here)
	}

	how := ""
	if e.Allocated {
		how = " through a machine class"
	}

	if e.Cluster == "" {
		return fmt.Sprintf("%s %q is %s by something that names no cluster", omni.KindOf(e.Type), e.ID, omni.ErrCollision)
	}

	switch {
	case e.Gone:
		how += ", which Omni does not have any more: remove what is left of it there"
	case e.Leaving:
		how += ", which is being torn down"
	}

	return fmt.Sprintf("%s %q is %s by cluster %q%s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Cluster, how)
}

// Is makes errors.Is(err, ErrCollision) true.
func (e *CollisionError) Is(target error) bool { return target == omni.ErrCollision }

// ChangeError is one change that failed.
type ChangeError struct {
	// Change is the change that was tried.
	Change Change
	// Class is the class of the cause.
	Class omni.Class
	cause error
	// advice says what to do about the cause; empty if Omni's own words are enough.
	advice string
}

// Error implements error. The text is bounded and safe for conditions.
func (e *ChangeError) Error() string {
	text := fmt.Sprintf("%s %s %q: %s", e.Change.Action, omni.KindOf(e.Change.Type), e.Change.ID, omni.Message(e.cause))
	if e.advice != "" {
		text += "; " + e.advice
	}

	return text
}

// Unwrap returns the raw cause, which Classify can sort.
func (e *ChangeError) Unwrap() error { return e.cause }

// Classified returns the class of the cause, for Classify: the text has lost the code.
func (e *ChangeError) Classified() omni.Class { return e.Class }
