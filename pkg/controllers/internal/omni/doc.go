// Package omni is the only room of the controller that talks to Omni.
//
// It wraps the public packages of github.com/siderolabs/omni/client v1.9.3 and
// github.com/cosi-project/runtime, and hands plain values to the controllers:
// no Kubernetes API type goes in or out.
//
// # From a Secret to a session
//
//	key, err := omni.ParseServiceAccountKey(secret.Data["serviceAccountKey"])   // ErrKey... sentinels
//	pool := omni.NewPool(ctx, omni.PoolOptions{ClusterChanged: ..., HealthChanged: ..., Observer: ...})
//	lease, err := pool.Acquire(ctx, omni.Identity{UID: uid, SecretVersion: rv}, omni.Config{...})
//	defer lease.Release()
//
// A Session (lease.Session) is one authenticated client plus one Mirror: a
// local copy of the few resource types that matter, kept current by COSI
// watches. The OmniConnection controller acquires; the OmniCluster controller
// uses pool.Get(uid). Both must release. A replaced or forgotten session is
// closed when its last lease is released.
//
// # One reconcile of a cluster
//
//	if err := s.Ready(cluster); err != nil { ... }            // ErrNotSynced, ErrBehind: come back, do not plan
//	live, err := s.Inspect(ctx, cluster, keys)                // exists, owner marks, locked, tearing down, UUID
//	plan, err := s.Plan(ctx, template, omni.PlanOptions{})    // ErrTemplate, ErrCollision, ErrClusterTearingDown, ErrNotSynced, ErrBehind
//	result, err := s.Apply(ctx, plan, omni.ApplyOptions{Destructive: approved})
//	status, err := s.Observe(ctx, cluster)
//	ok, reason, message := omni.Running(status)
//
// Deleting is re-entrant: every reconcile calls PlanDelete and Apply, which
// together advance one step, and DeleteProgress, which names what blocks. The
// mirror's callback wakes the caller when Omni has moved on.
//
// Nothing in this package waits for a finalizer. Every call has a deadline.
//
// # Errors
//
// Raw errors of Omni are misleading (a refused update satisfies
// state.IsPhaseConflictError, a denied one state.IsOwnerConflictError, most
// have gRPC code Unknown). Classify is the one place that knows better; every
// error that leaves this package goes through it when the caller asks, and
// Message gives a bounded text without secrets for conditions and events.
package omni
