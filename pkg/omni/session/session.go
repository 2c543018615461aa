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

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/client/management"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// applyTimeout bounds one Apply as a whole. A template with hundreds of patches takes seconds.
const applyTimeout = 2 * time.Minute

// planAttempts is how often Plan plans again because each plan collides with other resources. Afterwards the callbacks
// of changes are enough.
const planAttempts = 3

// Session is what a controller works with: one client and the mirror of its Omni. It is safe for concurrent use.
type Session struct {
	client *Client // nil in tests over an in-memory state
	live   state.State
	mirror *mirror.Mirror
	access atomic.Pointer[accessAnswer] // nil until the first request
	// version is what Omni said of itself when the session was opened. An Omni of another version gets another session.
	version omni.Version
}

// New joins a live state and a mirror of it. Pool makes sessions; New is for tests over an in-memory COSI state.
func New(live state.State, mirror *mirror.Mirror) *Session {
	return &Session{live: live, mirror: mirror}
}

// Client returns the session's connection; nil for a session made by New.
func (s *Session) Client() *Client { return s.client }

// Mirror returns the session's local copy.
func (s *Session) Mirror() *mirror.Mirror { return s.mirror }

// Copy returns the local copy as a read-only state: see Mirror.State.
func (s *Session) Copy() state.State { return s.mirror.State() }

// Live returns Omni's own state: for decisions for which the copy may be too old, and for writes beside Apply.
func (s *Session) Live() state.State { return s.live }

// Version returns what Omni says of itself; the zero value if it does not, and for a session made by New.
func (s *Session) Version() omni.Version { return s.version }

// Serves reports whether Omni serves one of the mirrored types. It does not change while the session lives.
func (s *Session) Serves(resourceType resource.Type) bool { return s.mirror.Serves(resourceType) }

// Health returns the state of the session: of the local copy, and whether Omni answers calls. An Omni that counts as silent
// has answered nothing for seconds before, and has no grace.
func (s *Session) Health() mirror.Health {
	if s.client != nil {
		if health, answers := s.client.liveness.health(); !answers {
			return health
		}
	}

	return s.mirror.Health()
}

// Ready returns nil if the cluster may be planned now: see Mirror.Ready. An Omni that answers no calls is ErrNotSynced,
// too.
func (s *Session) Ready(cluster string) error {
	if s.client != nil {
		if health, answers := s.client.liveness.health(); !answers {
			return fmt.Errorf("%w: %s", omni.ErrNotSynced, health.Message)
		}
	}

	return s.mirror.Ready(cluster)
}

// InspectLive is omni.Inspect without the local copy: for decisions for which the copy may be too old. It is bounded by
// CallTimeout.
func (s *Session) InspectLive(ctx context.Context, cluster string) (omni.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	return omni.Inspect(ctx, s.live, cluster)
}

// Plan compares a template with the local copy: see plan.Sync. The template holds the cluster's name; name is only for
// Ready, and must be the same (ErrTemplate). Errors: those of Ready and plan.Sync. After ErrCollision, and while the plan lacks
// a machine, the mirror calls ClusterChanged for this cluster as soon as what it waits for changes.
func (s *Session) Plan(ctx context.Context, name string, template *plan.Template, options plan.Options) (*plan.Plan, error) {
	if err := s.Ready(name); err != nil {
		return nil, err
	}

	options.InstallDisks = s.Serves(omni.MachineInstallDiskConfigType)
	planned, err := plan.Sync(ctx, s.mirror.State(), template, options)

	// Await misses resources that became free before its call: plan again.
	for attempt := 0; s.mirror.Await(name, awaited(planned, err)) && attempt < planAttempts; attempt++ {
		planned, err = plan.Sync(ctx, s.mirror.State(), template, options)
	}

	if err != nil {
		return nil, err
	}

	if planned.Cluster != name {
		return nil, fmt.Errorf("%w: it is for cluster %q, not %q", omni.ErrTemplate, planned.Cluster, name)
	}

	return planned, nil
}

// awaited returns what of other clusters, or of none, a plan waits for.
func awaited(planned *plan.Plan, err error) []omni.ResourceKey {
	if err != nil {
		return plan.AwaitedBy(err)
	}

	return planned.Awaited()
}

// PlanDelete plans the next step of a cluster's deletion: see plan.Delete.
func (s *Session) PlanDelete(ctx context.Context, cluster string, options plan.DeleteOptions) (*plan.Plan, error) {
	if err := s.Ready(cluster); err != nil {
		return nil, err
	}

	s.LetGo(cluster)

	options.InstallDisks = s.Serves(omni.MachineInstallDiskConfigType)

	return plan.Delete(ctx, s.mirror.State(), cluster, options)
}

// LetGo ends what was recorded for a cluster that is not planned any more: it waits for nothing of others.
func (s *Session) LetGo(cluster string) { s.mirror.Await(cluster, nil) }

// Apply makes a plan's changes in Omni: see plan.Apply. Until the local copy shows them, Ready returns ErrBehind for
// the cluster.
func (s *Session) Apply(ctx context.Context, planned *plan.Plan, options plan.ApplyOptions) (plan.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()

	options.Written = func(written resource.Metadata, effect omni.Effect) { s.mirror.Expect(planned.Cluster, written, effect) }

	return plan.Apply(ctx, s.live, planned, options)
}

// Slow reports whether Omni now takes a second or longer to answer calls.
func (s *Session) Slow() bool { return s.client != nil && s.client.liveness.isSlow() }

// livenessChanged reopens the lost watches if Omni answers again.
func (s *Session) livenessChanged() {
	if s.client == nil {
		return
	}

	if _, answers := s.client.liveness.health(); answers {
		s.mirror.ReopenWatches()
	}
}

func (s *Session) close() {
	s.mirror.Stop()

	if s.client != nil {
		_ = s.client.Close() // nothing is in flight any more
	}
}

// KubeconfigRequest is the identity and lifetime of a kubeconfig. All fields are required: without groups, Omni issues
// a token that it does not accept afterwards.
type KubeconfigRequest struct {
	// Cluster is the cluster's name in Omni.
	Cluster string
	// User and Groups are the bearer's identity in the workload cluster.
	User   string
	Groups []string
	// TTL is how long the token is valid; Omni refuses more than ten years.
	TTL time.Duration
}

// IssueKubeconfig makes Omni sign a kubeconfig for a service account: YAML with one cluster (no CA), one context and
// one user with a bearer token. It is a secret, and cannot be revoked: request it only to store it. The call is bounded
// by CallTimeout and needs the role Operator.
//
// Errors: ErrNoClusterUUID; else those of the call, see Classify.
func (s *Session) IssueKubeconfig(ctx context.Context, request KubeconfigRequest) ([]byte, error) {
	if s.client == nil {
		return nil, omni.ErrClosed
	}

	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	kubeconfig, err := s.client.library.Management().WithCluster(request.Cluster).
		Kubeconfig(ctx, management.WithServiceAccount(request.TTL, request.User, request.Groups...))

	switch {
	case err != nil && strings.Contains(err.Error(), "failed to get cluster UUID"):
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: %w", request.Cluster, omni.ErrNoClusterUUID)
	case err != nil:
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: %w", request.Cluster, err)
	case len(kubeconfig) == 0:
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: Omni answered with nothing", request.Cluster)
	}

	return kubeconfig, nil
}
