// Package omni is what all packages below it share: which errors there are, what
// kind of failure one is and how it is told, and whose cluster it is in Omni.
//
// The packages below pkg/omni are the only ones of the controller that talk to Omni.
// They wrap the public packages of github.com/siderolabs/omni/client v1.9.3 and
// github.com/cosi-project/runtime, and hand plain values to the controllers: no
// Kubernetes API type goes in or out. Each imports only those above it in this list:
//
//	omni      errors, classes and messages; Inspect: whose cluster it is
//	bounds    how much an Omni may send, and how much is kept of it
//	mirror    the local copy of one Omni, kept current by watches
//	plan      what has to change, whether it may, and the changes themselves
//	observe   what is read for statuses and exports; whether a cluster runs
//	session   keys, connections, the pool; joins the others for one connection
//
// # One reconcile of a cluster
//
//	live, err := omni.Inspect(ctx, s.Copy(), cluster, keys)          // exists, owner's marks, locked, tearing down, UUID
//	changes, err := s.Plan(ctx, cluster, template, plan.Options{})   // ErrTemplate, ErrCollision, ErrClusterTearingDown, ErrNotSynced, ErrBehind
//	result, err := s.Apply(ctx, changes, plan.ApplyOptions{Consent: consent})
//	status, err := observe.Observe(ctx, s.Copy(), cluster)
//	ok, reason, message := observe.Running(status)
//
// After an Apply that wrote something, Plan answers ErrBehind until the mirror
// shows it, which takes milliseconds; the mirror's callback then wakes the
// caller. ErrNotSynced and ErrBehind (ClassNotReady) mean: come back in about
// a second at the latest, and leave the conditions as they are.
//
// Plan.Hash stands for the destructive changes; the caller decides which of them
// have leave (asked for, settled, approved). Apply holds the others and what
// depends on them, and applies the rest.
//
// Deleting is re-entrant: every reconcile calls PlanDelete and Apply, which
// together advance one step, and observe.Progress, which names what blocks.
//
// Nothing here waits for a finalizer. Every call has a deadline.
//
// # Errors
//
// Raw errors of Omni are misleading (a refused update satisfies
// state.IsPhaseConflictError, a denied one state.IsOwnerConflictError, most
// have gRPC code Unknown). Classify is the one place that knows better, and
// Message gives a bounded text without secrets for conditions and events.
package omni
