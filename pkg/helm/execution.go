package helm

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

// The pauses before a record is written again double from the first to the longest.
const (
	firstWritePause   = 500 * time.Millisecond
	longestWritePause = 10 * time.Second
)

// execution is what one action uses. What only reads has no request.
type execution struct {
	config  *action.Configuration
	storage *resumable
	last    *lastError
	values  *redactor
	memory  *memoryShare // may be nil
	older   RecordSize   // of what is kept of older revisions; see keepOlder
	guard   *kubeclient.Guard

	request Request
	// Waiting ends with soft, everything else with hard; see Run.
	hard, soft context.Context //nolint:containedctx // they are the action's
}

// mayChange is asked before the action changes the first thing. The error is that of an action that is not to begin any more.
func (x *execution) mayChange() error {
	if x.request.Begin == nil {
		return nil
	}

	return x.request.Begin()
}

// newExecution makes what an action uses. It is asked to stop with ctx; its requests end with hard.
func (c *Client) newExecution(ctx, hard, soft context.Context, request Request, memory *memoryShare) (*execution, error) {
	x, err := c.open(hard, request.Values, memory)
	if err != nil {
		return nil, err
	}

	x.request, x.hard, x.soft = request, hard, soft
	x.guard.TakeOwnership = request.Settings.TakeOwnership
	x.storage.hidden, x.storage.process = request.Decision.Resume, request.Wanted.Process
	x.storage.again = x.writeAgain
	x.storage.owner, x.storage.hub, x.storage.generation = request.Wanted.Owner, request.Wanted.Hub, request.Wanted.Generation
	if request.Observed != nil {
		x.storage.list = func() (Observed, error) { return *request.Observed, nil }
	}

	// A rollback that was stopped is decided anew.
	if action := request.Decision.Action; action == ActionInstall || action == ActionUpgrade {
		x.storage.stopped = func() bool { return ctx.Err() != nil }
	}

	x.config.Releases.MaxHistory = request.Settings.MaxHistory

	return x, nil
}

// open makes Helm's configuration for one action. All its requests end with ctx. Records that are read take memory of
// the share, unless that is nil.
func (c *Client) open(ctx context.Context, merged values.Values, memory *memoryShare) (*execution, error) {
	clients, err := kubeclient.NewGetter(kubeclient.Bounded(ctx, c.target.Config), c.target.Namespace)
	if err != nil {
		return nil, err
	}

	last, redactor := &lastError{}, c.redactorFor(merged)
	config := action.NewConfiguration(action.ConfigurationSetLogger(&logHandler{log: c.log, values: redactor, last: last}))

	if err := config.Init(clients, c.target.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	if err := kubeclient.RememberKinds(config, c.target.Validated); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	guard := &kubeclient.Guard{Release: c.release()}
	if err := guard.Watch(config); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	kept, err := NewRecords(ctx, config, c.target.Namespace, memory.admit)
	if err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	storage := newResumable(kept, c.target.Name, func() (Observed, error) { return c.Observe(ctx) })
	storage.redact = redactor.redact
	config.Releases.Driver = storage
	guard.Hooked = func(info *resource.Info) bool { return c.namedByHook(storage, info) }

	return &execution{config: config, storage: storage, last: last, values: redactor, guard: guard, memory: memory}, nil
}

// writeAgain waits before a record is written again, and reports whether there is time for that.
func (x *execution) writeAgain(tries int) bool {
	select {
	case <-x.hard.Done():
		return false
	case <-time.After(limiter.Jitter(limiter.BackoffAfter(tries, firstWritePause, longestWritePause))):
		return x.hard.Err() == nil
	}
}
