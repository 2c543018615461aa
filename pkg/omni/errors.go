package omni

import (
	"errors"
	"fmt"
)

// Sentinels for decisions. Classify knows all of them.
var (
	// ErrKeyExpired: the service account key's lifetime is over. Dial checks
	// it before it connects.
	ErrKeyExpired = errors.New("the service account key has expired: create a new one with `omnictl serviceaccount renew` or `create`")

	// ErrEndpoint: the endpoint is not a usable URL.
	ErrEndpoint = errors.New("the endpoint is not a usable URL (https://host[:port], or http/grpc for plaintext)")

	// ErrCABundle: the CA bundle holds no certificate that can be read.
	ErrCABundle = errors.New("the CA bundle holds no readable PEM certificate")

	// ErrNotSynced: the local copy is not complete, or a watch is lost.
	ErrNotSynced = errors.New("the local copy of Omni's resources is not complete")

	// ErrBehind: the local copy does not yet show what we wrote ourselves.
	ErrBehind = errors.New("the local copy of Omni's resources does not show our last writes yet")

	// ErrReadOnly: somebody tried to write to the local copy.
	ErrReadOnly = errors.New("the local copy of Omni's resources is read-only")

	// ErrTemplate: the template does not load, validate or translate. This
	// never depends on what is in Omni.
	ErrTemplate = errors.New("invalid cluster template")

	// ErrCollision: a resource of the template exists in Omni and belongs to
	// another cluster. The error is a *CollisionError.
	ErrCollision = errors.New("already in use in Omni")

	// ErrClusterTearingDown: the cluster is being destroyed in Omni; nothing
	// is planned until it is gone.
	ErrClusterTearingDown = errors.New("the cluster is being destroyed in Omni")

	// ErrClusterLocked: the cluster is locked in Omni
	// (annotation omni.sidero.dev/cluster-locked); Apply changes nothing.
	ErrClusterLocked = errors.New("the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked)")

	// ErrPlanOutdated: what the plan was made for is not there any more.
	ErrPlanOutdated = errors.New("the plan is out of date")

	// ErrClosed: the session or pool was closed.
	ErrClosed = errors.New("the connection to Omni was closed")
)

// CollisionError names a resource of the template that another cluster (or,
// for a machine, a machine class of this one) already uses. It is ErrCollision.
type CollisionError struct {
	// Type is the COSI resource type, such as "MachineSetNodes.omni.sidero.dev".
	Type string
	// ID is the resource's ID; for a MachineSetNode the machine's UUID.
	ID string
	// Cluster is the Omni cluster that has it; empty if it names none.
	Cluster string
	// Allocated is true if Omni itself allocated the machine through a machine class.
	Allocated bool
	// Leaving is true if that cluster is being torn down, and Gone if Omni has no
	// cluster of that name (any more).
	Leaving, Gone bool
}

// Error implements error.
func (e *CollisionError) Error() string {
	how := ""
	if e.Allocated {
		how = " through a machine class"
	}

	if e.Cluster == "" {
		return fmt.Sprintf("%s %q is %s by something that names no cluster", KindOf(e.Type), e.ID, ErrCollision)
	}

	switch {
	case e.Gone:
		how += ", which Omni does not have any more: remove what is left of it there"
	case e.Leaving:
		how += ", which is being torn down"
	}

	return fmt.Sprintf("%s %q is %s by cluster %q%s", KindOf(e.Type), e.ID, ErrCollision, e.Cluster, how)
}

// Is makes errors.Is(err, ErrCollision) true.
func (e *CollisionError) Is(target error) bool { return target == ErrCollision }

// ChangeError is one change that Omni did not take.
type ChangeError struct {
	// Change is what was tried.
	Change Change
	// Class is Classify of the cause.
	Class Class
	cause error
}

// Error implements error. The text is safe for conditions and bounded.
func (e *ChangeError) Error() string {
	return fmt.Sprintf("%s %s %q: %s", e.Change.Action, KindOf(e.Change.Type), e.Change.ID, Message(e.cause))
}

// Unwrap gives the raw cause, which Classify understands.
func (e *ChangeError) Unwrap() error { return e.cause }
