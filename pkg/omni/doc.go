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
// A Session (embedded in the Lease) is one authenticated client plus one
// Mirror: a local copy of the few resource types that matter, kept current by
// COSI watches. The OmniConnection controller acquires; the OmniCluster
// controller uses pool.Get(uid). Both must release. A replaced or forgotten
// session is closed when its last lease is released.
//
// PoolOptions.ClusterChanged says which cluster to look at. HealthChanged says
// that a connection got well or sick: look at all of its clusters, because a
// mirror is silent about clusters until it is complete for the first time.
//
// # One reconcile of a cluster
//
//	live, err := s.Inspect(ctx, cluster, keys)                       // exists, owner's marks, locked, tearing down, UUID
//	plan, err := s.Plan(ctx, cluster, template, omni.PlanOptions{})  // ErrTemplate, ErrCollision, ErrClusterTearingDown, ErrNotSynced, ErrBehind
//	result, err := s.Apply(ctx, plan, omni.ApplyOptions{Leave: leave})
//	status, err := s.Observe(ctx, cluster)
//	ok, reason, message := omni.Running(status)
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
// together advance one step, and DeleteProgress, which names what blocks.
//
// Nothing in this package waits for a finalizer. Every call has a deadline.
//
// # Errors
//
// Raw errors of Omni are misleading (a refused update satisfies
// state.IsPhaseConflictError, a denied one state.IsOwnerConflictError, most
// have gRPC code Unknown). Classify is the one place that knows better, and
// Message gives a bounded text without secrets for conditions and events.
//
// # Tests
//
// NewSession joins any in-memory COSI state and a mirror of it, for tests that
// need no wire; PoolOptions.Open replaces dialling. The tests with the build
// tag realomni run against a real Omni through hack/test-omni.sh.
package omni
