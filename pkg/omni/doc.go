// Package omni is what all packages below it share: the errors, their classes and messages, the endpoints of Omni's API,
// and who owns a cluster in Omni.
//
// Only the packages below pkg/omni connect to Omni. They wrap the public packages of github.com/siderolabs/omni/client
// v1.9.3 and github.com/cosi-project/runtime, and return plain values to the controllers: no Kubernetes API type goes
// in or out. Each imports only those above it in this list:
//
//	omni      errors, classes and messages; Inspect: the owner of a cluster
//	bounds    how much data an Omni may send, and how much of it we keep
//	mirror    the local copy of one Omni, kept current by watches
//	plan      what has to change, whether it may, and the changes themselves
//	observe   reads for statuses and exports; whether a cluster runs
//	session   keys, connections, the pool; joins the others for one connection
//
// # One reconcile of a cluster
//
//	live, err := omni.Inspect(ctx, s.Copy(), cluster)                // exists, owner's marks, locked, tearing down, UUID
//	template, err := plan.Load(document)                             // ErrTemplate
//	changes, err := s.Plan(ctx, cluster, template, plan.Options{})   // ErrTemplate, ErrCollision, ErrClusterTearingDown, ErrNotSynced, ErrBehind
//	result, err := s.Apply(ctx, changes, plan.ApplyOptions{Consent: consent})
//	status, err := observe.Observe(ctx, s.Copy(), cluster)
//	ok, reason, message := observe.Running(status)
//
// After an Apply that wrote something, Plan returns ErrBehind until the mirror shows the write, which takes
// milliseconds; the mirror's callback then wakes the caller. On ErrNotSynced and ErrBehind (ClassNotReady), the caller
// retries within about a second; until then it shows that it waits for the copy.
//
// Plan.Hash is a digest of the destructive changes; the caller decides which of them have consent (requested, settled,
// approved). Apply holds the others and what depends on them, and applies the rest.
//
// Deletion is re-entrant: every reconcile calls PlanDelete and Apply, which together advance one step, and
// observe.Progress, which names what blocks.
//
// Nothing here waits for a finalizer. Every call has a deadline.
//
// # Errors
//
// Omni's raw errors are misleading: a refused update satisfies state.IsPhaseConflictError, a denied one
// state.IsOwnerConflictError, and most have gRPC code Unknown. Classify is the one place that sorts them out, and
// Message returns a bounded text without secrets for conditions and events.
package omni
