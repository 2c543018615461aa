package omnicluster

import (
	"context"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
)

// lagging is an Omni whose watch of a type is silent from one moment to another.
type lagging struct {
	state.State

	silent   resource.Type
	from, on <-chan struct{}
}

// WatchKind implements state.CoreState.
func (l lagging) WatchKind(ctx context.Context, kind resource.Kind, told chan<- state.Event, options ...state.WatchKindOption) error {
	if kind.Type() != l.silent {
		return l.State.WatchKind(ctx, kind, told, options...)
	}

	happened := make(chan state.Event)
	if err := l.State.WatchKind(ctx, kind, happened, options...); err != nil {
		return err
	}

	go l.pass(ctx, happened, told)

	return nil
}

func (l lagging) pass(ctx context.Context, happened <-chan state.Event, told chan<- state.Event) {
	var held []state.Event

	on := l.on

	for {
		select {
		case <-ctx.Done():
			return
		case <-on:
			on = nil
		case event := <-happened:
			held = append(held, event)
		}

		now := held
		if on != nil && isClosed(l.from) {
			now, held = split(held)
		} else {
			held = nil
		}

		for _, event := range now {
			if !tell(ctx, told, event) {
				return
			}
		}
	}
}

func isClosed(moment <-chan struct{}) bool {
	select {
	case <-moment:
		return true
	default:
		return false
	}
}

// split takes the end of the first contents out of what is held back.
func split(events []state.Event) (now, held []state.Event) {
	for _, event := range events {
		if event.Type == state.Bootstrapped {
			now = append(now, event)
		} else {
			held = append(held, event)
		}
	}

	return now, held
}

func tell(ctx context.Context, told chan<- state.Event, event state.Event) bool {
	select {
	case told <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// lag gives the controller a new local copy that shows no cluster until the
// returned function is called.
func (f *fixture) lag() (catchUp func()) {
	f.t.Helper()

	always, on := make(chan struct{}), make(chan struct{})
	close(always)
	f.lagBetween(omnires.ClusterType, always, on)

	return func() { close(on) }
}

// lagBetween gives the controller a new local copy whose watch of a type is silent between two moments.
func (f *fixture) lagBetween(silent resource.Type, from, on <-chan struct{}) {
	f.t.Helper()

	f.pool.Close()
	f.pool = session.NewPool(f.t.Context(), session.PoolOptions{
		Open: func(_ context.Context, _ session.Config, options mirror.Options) (*session.Session, error) {
			return session.New(f.omni.State(), mirror.Start(f.t.Context(), lagging{f.omni.State(), silent, from, on}, options)), nil
		},
	})
	f.t.Cleanup(f.pool.Close)
	f.connect()
	f.restart()
}

// A copy that does not show the cluster yet does not make it gone.
func TestDeletionWaitsForTheCopyToShowTheCluster(t *testing.T) {
	f := running(t)
	catchUp := f.lag()
	f.delete(newCluster())

	for range 5 {
		f.run()
	}

	says(t, message(f.get(), "Ready"), "does not show")

	if f.hasEvent("Released") || !f.view().Exists {
		t.Errorf("Omni has %+v, events %q", f.view(), f.events.All())
	}

	catchUp()
	f.untilGone()

	if f.view().Exists || !f.hasEvent("Released") {
		t.Errorf("Omni has %+v, events %q", f.view(), f.events.All())
	}
}

// That the copy shows no cluster any more is not the last word either.
func TestDestroyedIsConfirmedByOmni(t *testing.T) {
	f := running(t)
	f.lag()

	lease, _ := f.pool.Get("uid-connection")
	defer lease.Release()

	outcome, err := f.reconciler.destroy(t.Context(), &scope{cluster: f.get(), name: testCluster, lease: lease, seen: &seen{}})
	if err != nil || outcome.Continues() {
		t.Errorf("%+v, %v", outcome, err)
	}
}
