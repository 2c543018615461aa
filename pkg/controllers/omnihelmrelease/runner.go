package omnihelmrelease

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/helm"
)

// job is one action on one release, running or ended.
type job struct {
	action  helm.Action
	attempt string
	begun   time.Time
	ended   time.Time // zero while it runs
	err     error
}

// running tells whether the action has not ended yet.
func (j job) running() bool { return j.ended.IsZero() }

// runner runs actions beside the reconciler: one at a time for each release,
// so many at once in all. It is a Runnable of the manager, whose stop waits
// until the running actions have ended in order.
type runner struct {
	slots chan struct{}
	now   func() time.Time
	// ended is called after each action.
	ended func(types.NamespacedName)

	mu      sync.Mutex
	jobs    map[types.UID]job
	stopped bool
	running sync.WaitGroup
	stop    context.CancelFunc
	life    context.Context //nolint:containedctx // the life of the actions, which outlive the runs that begin them
}

func newRunner(parallel int, now func() time.Time, ended func(types.NamespacedName)) *runner {
	life, stop := context.WithCancel(context.Background())

	return &runner{slots: make(chan struct{}, parallel), now: now, ended: ended, jobs: map[types.UID]job{}, life: life, stop: stop}
}

// Start implements manager.Runnable: it blocks until the manager stops, and
// then until the running actions have ended. Those end in order and are marked
// so that the next controller goes on with them.
func (r *runner) Start(ctx context.Context) error {
	<-ctx.Done()

	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()

	r.stop()
	r.running.Wait()

	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: whoever does
// not lead runs nothing.
func (r *runner) NeedLeaderElection() bool { return true }

// begin begins an action unless one of the release runs already, or the
// controller stops. The action waits for a free place.
func (r *runner) begin(name types.NamespacedName, uid types.UID, action helm.Action, attempt string, run func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if current, ok := r.jobs[uid]; r.stopped || ok && current.running() {
		return
	}

	begun := job{action: action, attempt: attempt, begun: r.now()}
	r.jobs[uid] = begun

	r.running.Go(func() {
		err := r.inPlace(run)

		r.mu.Lock()
		begun.ended, begun.err = r.now(), err
		r.jobs[uid] = begun
		r.mu.Unlock()

		r.ended(name)
	})
}

// inPlace runs an action in one of the places.
func (r *runner) inPlace(run func(context.Context) error) error {
	stopped := &helm.Error{Reason: helm.ReasonInterrupted, Message: "the controller stopped before the action was begun"}

	select {
	case r.slots <- struct{}{}:
	case <-r.life.Done():
		return stopped
	}

	defer func() { <-r.slots }()

	// Both may have come at once.
	if r.life.Err() != nil {
		return stopped
	}

	return run(r.life)
}

// job returns the action of a release, running or ended and not forgotten yet.
func (r *runner) job(uid types.UID) (job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	found, ok := r.jobs[uid]

	return found, ok
}

// forget drops an action that has ended, once its result is written down.
func (r *runner) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found, ok := r.jobs[uid]; ok && !found.running() {
		delete(r.jobs, uid)
	}
}
