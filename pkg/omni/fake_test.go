package omni

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Machine IDs for tests.
const (
	machine1 = "11111111-1111-4111-8111-111111111111"
	machine2 = "22222222-2222-4222-8222-222222222222"
	machine3 = "33333333-3333-4333-8333-333333333333"
	machine4 = "44444444-4444-4444-8444-444444444444"
)

// fakeOmni is an in-memory COSI state whose watches can be cut and whose calls
// can be made to fail.
type fakeOmni struct {
	state.State

	mu     sync.Mutex
	cut    context.CancelCauseFunc
	alive  context.Context //nolint:containedctx // stands for the network
	silent chan struct{}   // closed when running watches tell nothing any more
	refuse map[resource.Type]error
	writes []string
}

func newFakeOmni() *fakeOmni {
	f := &fakeOmni{
		State: state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState {
			return inmem.NewStateWithOptions(inmem.WithHistoryGap(20))(ns)
		})),
		refuse: map[resource.Type]error{}, silent: make(chan struct{}),
	}
	f.alive, f.cut = context.WithCancelCause(context.Background())

	return f
}

// loseWatches ends every running watch with an error; new ones work unless
// their type is refused.
func (f *fakeOmni) loseWatches(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.cut(err)
	f.alive, f.cut = context.WithCancelCause(context.Background())
}

// silence lets every running watch tell nothing any more, and not end either; new ones work.
func (f *fakeOmni) silence() {
	f.mu.Lock()
	defer f.mu.Unlock()

	close(f.silent)
	f.silent = make(chan struct{})
}

// refuseWatch makes watches of a type fail; nil lets them work again.
func (f *fakeOmni) refuseWatch(resourceType resource.Type, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.refuse[resourceType] = err
}

// WatchKind implements state.CoreState.
func (f *fakeOmni) WatchKind(ctx context.Context, kind resource.Kind, events chan<- state.Event, options ...state.WatchKindOption) error {
	f.mu.Lock()
	alive, silent, refusal := f.alive, f.silent, f.refuse[kind.Type()]
	f.mu.Unlock()

	if refusal != nil {
		return refusal
	}

	ctx, cancel := context.WithCancel(ctx)
	inner := make(chan state.Event)

	if err := f.State.WatchKind(ctx, kind, inner, options...); err != nil {
		cancel()

		return err
	}

	go func() {
		defer cancel()

		for {
			var event state.Event

			select {
			case <-ctx.Done():
				return
			case <-silent:
				<-ctx.Done()

				return
			case <-alive.Done():
				event = state.Event{Type: state.Errored, Error: context.Cause(alive)}
			case event = <-inner:
			}

			select {
			case <-ctx.Done():
				return
			case events <- event:
			}

			if event.Type == state.Errored {
				return
			}
		}
	}()

	return nil
}

// recorded notes what callbacks tell.
type recorded struct {
	mu       sync.Mutex
	clusters []string
	health   int
}

func (r *recorded) options() MirrorOptions {
	return MirrorOptions{
		ClusterChanged: func(cluster string) {
			r.mu.Lock()
			defer r.mu.Unlock()

			r.clusters = append(r.clusters, cluster)
		},
		HealthChanged: func() {
			r.mu.Lock()
			defer r.mu.Unlock()

			r.health++
		},
		ResyncMinDelay: time.Millisecond,
		ResyncMaxDelay: 5 * time.Millisecond,
	}
}

// take returns what was told since the last call, and forgets it.
func (r *recorded) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	taken := r.clusters
	r.clusters = nil

	return taken
}

// healthChanges is how often HealthChanged was called.
func (r *recorded) healthChanges() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.health
}

func (r *recorded) told(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, name := range r.clusters {
		if name == cluster {
			return true
		}
	}

	return false
}

// eventually polls a condition that holds within a few seconds, or on a busy machine within a few minutes.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()

	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return
		}
	}

	t.Fatalf("did not happen in time: %s", what)
}

// startMirror starts a mirror and waits until it is synced.
func startMirror(t *testing.T, source state.CoreState, options MirrorOptions) *Mirror {
	t.Helper()

	m := StartMirror(t.Context(), source, options)
	t.Cleanup(m.Stop)
	eventually(t, "mirror synced", m.Synced)

	return m
}

func mustCreate(t *testing.T, st state.State, items ...resource.Resource) {
	t.Helper()

	for _, item := range items {
		if err := st.Create(t.Context(), item, state.WithCreateOwner(item.Metadata().Owner())); err != nil {
			t.Fatal(err)
		}
	}
}

// mustChange changes a resource in place, whoever owns it.
func mustChange[R resource.Resource](t *testing.T, st state.State, item R, change func(R)) {
	t.Helper()

	_, err := st.UpdateWithConflicts(t.Context(), item.Metadata(), func(found resource.Resource) error {
		change(found.(R)) //nolint:forcetypeassert // a test

		return nil
	}, state.WithExpectedPhaseAny(), state.WithUpdateOwner(item.Metadata().Owner()))
	if err != nil {
		t.Fatal(err)
	}
}

func mustDestroy(t *testing.T, st state.State, item resource.Resource) {
	t.Helper()

	if err := st.Destroy(t.Context(), item.Metadata()); err != nil {
		t.Fatal(err)
	}
}

// labelled sets the cluster label and returns the resource.
func labelled[R resource.Resource](item R, cluster string) R {
	item.Metadata().Labels().Set(omnires.LabelCluster, cluster)

	return item
}

func clusterNamed(name string) *omnires.Cluster {
	cluster := omnires.NewCluster(name)
	cluster.TypedSpec().Value.KubernetesVersion = "1.35.0"
	cluster.TypedSpec().Value.TalosVersion = "1.13.2"

	return cluster
}

func setNamed(cluster, name string) *omnires.MachineSet {
	return labelled(omnires.NewMachineSet(cluster+"-"+name), cluster)
}

func classSet(cluster, name, class string, count uint32) *omnires.MachineSet {
	set := setNamed(cluster, name)
	set.TypedSpec().Value.MachineAllocation = &specs.MachineSetSpec_MachineAllocation{Name: class, MachineCount: count}

	return set
}

func unlimitedSet(cluster, name, class string) *omnires.MachineSet {
	set := classSet(cluster, name, class, 0)
	set.TypedSpec().Value.MachineAllocation.AllocationType = specs.MachineSetSpec_MachineAllocation_Unlimited

	return set
}

// silentOmni accepts watches and never says anything.
type silentOmni struct{ state.State }

// WatchKind implements state.CoreState.
func (silentOmni) WatchKind(context.Context, resource.Kind, chan<- state.Event, ...state.WatchKindOption) error {
	return nil
}
