// Package session connects to Omnis: from the key in a Secret to a client that
// authenticates, bounds and counts every call, with a mirror beside it.
//
//	key, err := session.ParseServiceAccountKey(secret.Data["serviceAccountKey"])   // omni.ErrKey... sentinels
//	pool := session.NewPool(ctx, session.PoolOptions{ClusterChanged: ..., HealthChanged: ..., Observer: ...})
//	lease, err := pool.Acquire(ctx, session.Identity{UID: uid, SecretUID: secret.UID}, session.Config{...})
//	defer lease.Release()
//
// A Session (embedded in the Lease) is one authenticated client plus one mirror. The
// OmniConnection controller acquires; the OmniCluster controller uses pool.Get(uid).
// Both must release. A replaced or forgotten session is closed when its last lease is
// released.
//
// PoolOptions.ClusterChanged says which cluster to look at. HealthChanged says that a
// connection got well or sick: look at all of its clusters, because a mirror is silent
// about clusters until it is complete for the first time.
//
// Its methods are those that need more than one of its parts: Ready and Health ask the
// mirror and whether Omni answers at all, Plan and PlanDelete wait for the copy, Apply
// notes what was written. What only reads is a function of packages omni and observe,
// over Copy or Live.
//
// # Tests
//
// New joins any in-memory COSI state and a mirror of it, for tests that need no wire;
// PoolOptions.Open replaces dialling. The tests with the build tag realomni run against
// a real Omni through hack/test-omni.sh.
package session
