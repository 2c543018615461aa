package omnihelmrelease

import (
	"context"
	"slices"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// cluster is a workload cluster of the imagination with one release in it.
type cluster struct {
	mu          sync.Mutex
	now         func() time.Time
	revisions   []helm.Revision // the newest first
	did         []helm.Action
	values      values.Values // of the last action
	fail        error         // of every install and upgrade
	refuse      error         // of every action, before it changes anything
	during      func()        // in every action
	hold        chan struct{}
	ends        chan struct{} // an action that is interrupted while it is held waits for it; nil: none does
	room        chan struct{} // every action waits for it before it changes anything; nil: none does
	waiting     int           // for room
	differences []drift.Difference
	compared    error         // of every comparison
	slow        time.Duration // every comparison takes so long
	lost        error         // of every observation
	note        string        // of every action; empty: none
	marks       []helm.Mark   // that were written
	unmarkable  error         // of every mark
}

func (c *cluster) Observe(context.Context) (helm.Observed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return helm.Observed{Revisions: slices.Clone(c.revisions)}, c.lost
}

func (c *cluster) Details(_ context.Context, revision int) (helm.Details, error) {
	return helm.Details{Number: revision, Chart: "demo", ChartVersion: "1.0.0", AppVersion: "app", Description: "it broke"}, nil
}

// inRoom waits for room.
func (c *cluster) inRoom(ctx context.Context) error {
	c.mu.Lock()
	room := c.room
	if room != nil {
		c.waiting++
	}
	c.mu.Unlock()

	if room == nil {
		return nil
	}

	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return &helm.Error{Reason: helm.ReasonInterrupted, Message: "there was no room"}
	}
}

func (c *cluster) Run(ctx context.Context, request helm.Request) error {
	if err := c.inRoom(ctx); err != nil {
		return err
	}

	c.mu.Lock()
	hold, ends := c.hold, c.ends
	c.mu.Unlock()

	if request.Begin != nil {
		if err := request.Begin(); err != nil {
			return err
		}
	}

	c.mu.Lock()
	c.did = append(c.did, request.Decision.Action)
	c.values = request.Values
	refuse, during := c.refuse, c.during
	c.mu.Unlock()

	if during != nil {
		during()
	}

	if c.note != "" {
		request.Note(helm.NoteNamespaceCreated, c.note)
	}

	if refuse != nil {
		return refuse
	}

	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			if ends != nil {
				<-ends
			}

			return &helm.Error{Reason: helm.ReasonInterrupted, Message: "interrupted"}
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	made := helm.Revision{
		Number: len(c.revisions) + 1, Status: helm.StatusDeployed, Content: request.Wanted.Content, Attempt: request.Wanted.Attempt,
		Owner: request.Wanted.Owner, Hub: request.Wanted.Hub, Generation: request.Wanted.Generation, ChartVersion: "1.0.0", Modified: c.now(),
	}

	switch request.Decision.Action {
	case helm.ActionUninstall:
		c.revisions = nil

		return nil
	case helm.ActionUnlock:
		c.revisions[len(c.revisions)-request.Decision.Revision].Status = helm.StatusFailed

		return nil
	case helm.ActionTest:
		c.revisions[0].Tested = helm.TestsPassed
		if c.fail != nil {
			c.revisions[0].Tested = helm.TestsFailed
		}

		return c.fail
	case helm.ActionRollback:
		made.Content = c.revisions[len(c.revisions)-1].Content
	default:
		if c.fail != nil {
			made.Status = helm.StatusFailed
		}
	}

	if made.Status == helm.StatusDeployed {
		for i := range c.revisions {
			if c.revisions[i].Status == helm.StatusDeployed {
				c.revisions[i].Status = helm.StatusSuperseded
			}
		}
	}

	c.revisions = append([]helm.Revision{made}, c.revisions...)

	if request.Decision.Action == helm.ActionRollback {
		return nil
	}

	return c.fail
}

func (c *cluster) Drift(context.Context, int, []drift.Ignore) ([]drift.Difference, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	time.Sleep(c.slow)

	return c.differences, c.compared
}

func (c *cluster) Correct(ctx context.Context, _ int, _ []drift.Ignore, begin func() error) ([]drift.Difference, error) {
	if err := c.inRoom(ctx); err != nil {
		return nil, err
	}

	if err := begin(); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.did = append(c.did, actionCorrect)
	found := c.differences
	c.differences = nil

	return found, nil
}

func (c *cluster) Mark(_ context.Context, mark helm.Mark) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.unmarkable != nil {
		return c.unmarkable
	}

	for i := range c.revisions {
		if revision := &c.revisions[i]; revision.Number == mark.Revision && revision.Owner == mark.Owner && revision.Hub == mark.From {
			c.marks = append(c.marks, mark)
			revision.Hub = mark.To

			if mark.From != "" && revision.UnderWay() {
				revision.Modified = c.now()
			}

			return nil
		}
	}

	return &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody else was quicker"}
}

// actions are what was done, in order.
func (c *cluster) actions() []helm.Action {
	c.mu.Lock()
	defer c.mu.Unlock()

	return slices.Clone(c.did)
}
