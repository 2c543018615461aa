// Package session connects to Omnis: from the key in a Secret to a client that authenticates, bounds and counts every
// call, with a mirror beside it.
//
//	key, err := session.ParseServiceAccountKey(secret.Data["serviceAccountKey"])   // omni.ErrKey... sentinels
//	pool := session.NewPool(ctx, session.PoolOptions{ClusterChanged: ..., HealthChanged: ..., Observer: ...})
//	lease, err := pool.Acquire(ctx, session.Identity{UID: uid, Owner: namespace, SecretUID: secret.UID}, session.Config{...})
//	defer lease.Release()
//
// The memory for copies is shared out by Identity.Owner: see bounds.Limits.TotalMemory.
//
// A Session (embedded in the Lease) is one authenticated client plus one mirror. The OmniConnection controller calls
// Acquire; the OmniCluster controller calls pool.Get(uid). Both must release their leases. A replaced or forgotten
// session is closed when its last lease is released.
//
// PoolOptions.ClusterChanged names the cluster to reconcile. HealthChanged reports that a connection became healthy or
// unhealthy: reconcile all of its clusters, because a mirror reports no clusters until it is complete for the first
// time.
//
// The methods of Session are those that need several of its parts: Ready and Health combine the mirror with the
// liveness of Omni, Plan and PlanDelete return an error until the copy is ready, Apply records its writes. Plain reads
// are functions of packages omni and observe, over Copy or Live.
//
// # Tests
//
// New joins any in-memory COSI state and a mirror of it, for tests without a connection; PoolOptions.Open replaces
// dialling. The tests with the build tag realomni run against a real Omni through hack/test-omni.sh.
package session
