package session

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// applyTimeout bounds one Apply as a whole, in time. A template with hundreds
// of patches is a matter of seconds.
const applyTimeout = 2 * time.Minute

// planAttempts is how often a plan is made anew because what is in its way is
// another thing each time. Then the changes that are told meanwhile count.
const planAttempts = 3

// Session is what a controller works with: one client and the mirror of its
// Omni. It is safe for concurrent use.
type Session struct {
	client *Client // nil in tests over an in-memory state
	live   state.State
	mirror *mirror.Mirror
}

// New joins a live state and a mirror of it. Pool makes sessions; this
// is for tests over an in-memory COSI state.
func New(live state.State, mirror *mirror.Mirror) *Session {
	return &Session{live: live, mirror: mirror}
}

// Client is the session's connection; nil for a session made by New.
func (s *Session) Client() *Client { return s.client }

// Mirror is the session's local copy.
func (s *Session) Mirror() *mirror.Mirror { return s.mirror }

// Copy is what the local copy has, for everything that only reads: see Mirror.State.
func (s *Session) Copy() state.State { return s.mirror.State() }

// Live is Omni itself: for what must not be decided by what a watch may not have
// shown yet, and for writes beside Apply.
func (s *Session) Live() state.State { return s.live }

// Health says how the session is: the local copy, and whether Omni answers calls.
func (s *Session) Health() mirror.Health {
	if s.client != nil {
		if health, answers := s.client.liveness.health(); !answers {
			return health
		}
	}

	return s.mirror.Health()
}

// Ready is nil if the cluster may be planned now: see Mirror.Ready. An Omni that
// answers no calls is ErrNotSynced, too.
func (s *Session) Ready(cluster string) error {
	if s.client != nil {
		if health, answers := s.client.liveness.health(); !answers {
			return fmt.Errorf("%w: %s", omni.ErrNotSynced, health.Message)
		}
	}

	return s.mirror.Ready(cluster)
}

// InspectLive is omni.Inspect past the local copy: for what must not be decided by
// what a watch may not have shown yet. It is bounded by CallTimeout.
func (s *Session) InspectLive(ctx context.Context, cluster string, keys omni.MarkKeys) (omni.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	return omni.Inspect(ctx, s.live, cluster, keys)
}

// Plan compares a template with the local copy: see plan.Sync. The cluster's
// name stands in the template; name is only checked for Ready, and must be the
// same. Errors are those of Ready and plan.Sync. After ErrCollision the mirror
// tells of this cluster as soon as what is in the way changes.
func (s *Session) Plan(ctx context.Context, name string, template []byte, options plan.Options) (*plan.Plan, error) {
	if err := s.Ready(name); err != nil {
		return nil, err
	}

	planned, err := plan.Sync(ctx, s.mirror.State(), template, options)

	// What came free before anybody listened is not told any more: look again.
	for attempt := 0; s.mirror.Await(name, plan.AwaitedBy(err)) && attempt < planAttempts; attempt++ {
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

// PlanDelete plans the next step of a cluster's destruction: see plan.Delete.
func (s *Session) PlanDelete(ctx context.Context, cluster string, options plan.DeleteOptions) (*plan.Plan, error) {
	if err := s.Ready(cluster); err != nil {
		return nil, err
	}

	s.mirror.Await(cluster, nil)

	return plan.Delete(ctx, s.mirror.State(), cluster, options)
}

// Apply makes a plan's changes in Omni: see plan.Apply. Until the local copy
// shows them, Ready says ErrBehind for the cluster.
func (s *Session) Apply(ctx context.Context, planned *plan.Plan, options plan.ApplyOptions) (plan.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()

	options.Written = func(written resource.Metadata, effect omni.Effect) { s.mirror.Expect(planned.Cluster, written, effect) }

	return plan.Apply(ctx, s.live, planned, options)
}

// Slow reports whether Omni takes a second or longer to answer calls just now.
func (s *Session) Slow() bool { return s.client != nil && s.client.liveness.isSlow() }

// noticed looks again at everything that waits for Omni's return.
func (s *Session) noticed() {
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
