package omni

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
)

// Times of the mirror.
const (
	// BootstrapTimeout bounds a watch from its request to the end of its first
	// contents.
	BootstrapTimeout = 60 * time.Second
	// ResyncMinDelay and ResyncMaxDelay bound the pause before a lost watch is
	// opened again: doubled each time, and up to half of it taken off at random.
	// The first watch that succeeds hurries the others, so after an outage all
	// of them are back soon after the first is.
	ResyncMinDelay = 500 * time.Millisecond
	ResyncMaxDelay = 15 * time.Second
	// WriteVisibleTimeout is how long the mirror may stay behind one of our own
	// writes before it stops waiting for it.
	WriteVisibleTimeout = 10 * time.Second
)

// MirrorOptions configures a Mirror. Every field may be zero.
type MirrorOptions struct {
	// ClusterChanged is told the name of a cluster in Omni for every change
	// that concerns it, whether or not anybody manages it. It must not block
	// and may be called from several goroutines.
	ClusterChanged func(cluster string)
	// HealthChanged is called after Health changed. It must not block.
	HealthChanged func()
	// ResyncMinDelay and ResyncMaxDelay replace the constants of the same name.
	ResyncMinDelay, ResyncMaxDelay time.Duration
	// BootstrapTimeout replaces the constant of the same name.
	BootstrapTimeout time.Duration
	// WriteVisibleTimeout replaces the constant of the same name.
	WriteVisibleTimeout time.Duration
	// Now replaces time.Now.
	Now func() time.Time
}

func (o MirrorOptions) withDefaults() MirrorOptions {
	if o.ClusterChanged == nil {
		o.ClusterChanged = func(string) {}
	}

	if o.HealthChanged == nil {
		o.HealthChanged = func() {}
	}

	if o.Now == nil {
		o.Now = time.Now
	}

	for _, field := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.ResyncMinDelay, ResyncMinDelay},
		{&o.ResyncMaxDelay, ResyncMaxDelay},
		{&o.BootstrapTimeout, BootstrapTimeout},
		{&o.WriteVisibleTimeout, WriteVisibleTimeout},
	} {
		if *field.value <= 0 {
			*field.value = field.standard
		}
	}

	return o
}

// Mirror is the local copy of one Omni's resources: Cluster, MachineSet,
// MachineSetNode, ConfigPatch, ExtensionsConfiguration,
// KubernetesManifestGroup, KubernetesHealthCheck, KernelArgs, and the statuses
// ClusterStatus, MachineSetStatus, ClusterMachineStatus, ControlPlaneStatus,
// LoadBalancerStatus, KubernetesUpgradeStatus, TalosUpgradeStatus,
// MachineStatus, ClusterUUID. It holds those of all clusters, because
// collisions by ID must be seen. It is safe for concurrent use.
type Mirror struct {
	source  state.CoreState
	options MirrorOptions
	store   *store
	writes  *writes
	health  *healthKeeper
	stop    context.CancelFunc
	running sync.WaitGroup

	hurrying sync.Mutex
	hurried  chan struct{} // closed when watches need not wait any longer
}

// StartMirror opens the watches and returns at once; Synced and HealthChanged
// tell when the copy is complete. The mirror runs until ctx ends or Stop.
func StartMirror(ctx context.Context, source state.CoreState, options MirrorOptions) *Mirror {
	ctx, stop := context.WithCancel(ctx)
	kinds := mirroredKinds()

	m := &Mirror{source: source, options: options.withDefaults(), store: newStore(kinds), stop: stop, hurried: make(chan struct{})}
	m.writes = newWrites(m.options.WriteVisibleTimeout, m.options.Now)
	m.health = newHealthKeeper(kinds, m.options.Now)

	for _, kind := range kinds {
		m.running.Go(func() { m.follow(ctx, kind.resourceType) })
	}

	return m
}

// Stop ends the watches and waits for them. What was read stays readable.
func (m *Mirror) Stop() {
	m.stop()
	m.running.Wait()
}

// Synced tells whether the copy is complete and every watch runs now.
func (m *Mirror) Synced() bool { return m.health.get().Synced }

// Health says how the copy is, and if it is not well, since when and why.
func (m *Mirror) Health() Health { return m.health.get() }

// State is the copy as a read-only COSI state for the library's template
// functions. Reads fail with ErrNotSynced until the copy is complete for the
// first time; after that they work even while a watch is lost, so call Ready
// before planning. Writes and watches fail with ErrReadOnly.
func (m *Mirror) State() state.State { return state.WrapCore(&mirrorState{store: m.store}) }

// Ready is nil if a plan for the cluster may be made from the copy now:
// ErrNotSynced before the copy is complete and while a watch is lost,
// ErrBehind while it does not show our own last writes to this cluster yet
// (at most WriteVisibleTimeout). HealthChanged or ClusterChanged will be
// called when that is over; ErrBehind may also end silently by its timeout,
// so come back after about a second.
func (m *Mirror) Ready(cluster string) error {
	if health := m.Health(); !health.Synced {
		return fmt.Errorf("%w: %s", ErrNotSynced, health.Message)
	}

	if waiting := m.writes.outstanding(cluster, m.store); waiting != "" {
		return fmt.Errorf("%w: %s", ErrBehind, waiting)
	}

	return nil
}

// follow keeps one table current for ever: watch, and when the watch is lost,
// wait and watch again.
func (m *Mirror) follow(ctx context.Context, resourceType resource.Type) {
	delay := m.options.ResyncMinDelay

	for ctx.Err() == nil {
		opened, hurried := m.options.Now(), m.nextHurry()

		synced, err := m.watchOnce(ctx, resourceType)
		if ctx.Err() != nil {
			return
		}

		// One that is lost again and again right after it was complete is no recovery.
		if synced && m.options.Now().Sub(opened) > delay {
			delay = m.options.ResyncMinDelay
		}

		m.store.lost(resourceType)

		if m.health.lost(resourceType, err) {
			m.options.HealthChanged()
		}

		m.rest(ctx, delay, hurried)
		delay = min(2*delay, m.options.ResyncMaxDelay)
	}
}

// rest waits before a watch is opened again. Those that are hurried still spread
// a little.
func (m *Mirror) rest(ctx context.Context, delay time.Duration, hurried <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(jittered(delay)):
	case <-hurried:
		select {
		case <-ctx.Done():
		case <-time.After(jittered(min(delay, m.options.ResyncMinDelay))):
		}
	}
}

// hurry ends the pauses of all lost watches: Omni is known to be back.
func (m *Mirror) hurry() {
	m.hurrying.Lock()
	defer m.hurrying.Unlock()

	close(m.hurried)
	m.hurried = make(chan struct{})
}

func (m *Mirror) nextHurry() <-chan struct{} {
	m.hurrying.Lock()
	defer m.hurrying.Unlock()

	return m.hurried
}

// jittered takes up to half off at random, so that many watches that were lost
// together do not return together.
func jittered(delay time.Duration) time.Duration {
	return delay - rand.N(delay/2+1)
}

// watchOnce runs one watch to its end and tells whether it got complete.
func (m *Mirror) watchOnce(ctx context.Context, resourceType resource.Type) (synced bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The watch has no deadline of its own, and its request waits for the
	// server's first message.
	alarm := time.AfterFunc(m.options.BootstrapTimeout, func() { cancel(errBootstrapTimeout) })
	defer alarm.Stop()

	events := make(chan []state.Event)
	kind := resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)

	if err = m.source.WatchKindAggregated(ctx, kind, events, state.WithBootstrapContents(true)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return false, fmt.Errorf("watch %s: %w", resourceType, err)
	}

	reception := reception{mirror: m, resourceType: resourceType, alarm: alarm, snapshot: map[resource.ID]resource.Resource{}}

	for err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case batch := <-events:
			err = reception.receive(batch)
		}
	}

	return reception.synced, fmt.Errorf("watch %s: %w", resourceType, err)
}

// reception is what has arrived of one watch.
type reception struct {
	mirror       *Mirror
	resourceType resource.Type
	alarm        *time.Timer // rings if the first contents take too long
	snapshot     map[resource.ID]resource.Resource
	synced       bool
}

// receive takes over one batch of events: first the snapshot, then changes.
func (r *reception) receive(batch []state.Event) error {
	if r.synced {
		return r.mirror.applyBatch(batch)
	}

	rest, done, err := fillSnapshot(r.snapshot, batch)
	if err != nil {
		return err
	}

	if !done {
		return nil
	}

	if !r.alarm.Stop() {
		return errBootstrapTimeout
	}

	r.synced = true
	r.mirror.bootstrapped(r.resourceType, r.snapshot)
	r.snapshot = nil

	return r.mirror.applyBatch(rest)
}

// errBootstrapTimeout ends a watch whose first contents never came to an end.
var errBootstrapTimeout = fmt.Errorf("the first contents did not arrive in time: %w", context.DeadlineExceeded)

// fillSnapshot collects events until the end of the first contents and returns
// those that came after it in the same batch.
func fillSnapshot(snapshot map[resource.ID]resource.Resource, batch []state.Event) (rest []state.Event, done bool, err error) {
	for i, event := range batch {
		switch event.Type {
		case state.Created, state.Updated:
			snapshot[event.Resource.Metadata().ID()] = event.Resource
		case state.Destroyed:
			delete(snapshot, event.Resource.Metadata().ID())
		case state.Bootstrapped:
			return batch[i+1:], true, nil
		case state.Errored:
			return nil, false, event.Error
		case state.Noop:
		}
	}

	return nil, false, nil
}

// bootstrapped takes over a complete snapshot; only differences are told. The
// first time it stays silent about clusters until every table is complete,
// because nobody can read before that: the health callback comes then, and
// whoever waits for it looks at all of its clusters.
func (m *Mirror) bootstrapped(resourceType resource.Type, snapshot map[resource.ID]resource.Resource) {
	touched := m.store.replace(resourceType, snapshot)
	changed := m.health.found(resourceType)

	m.hurry()

	if m.store.complete() {
		m.tell(touched)
	}

	if changed {
		m.options.HealthChanged()
	}
}

// applyBatch takes over changes and tells each concerned cluster once.
func (m *Mirror) applyBatch(batch []state.Event) error {
	var touched []string

	for _, event := range batch {
		switch event.Type {
		case state.Created, state.Updated:
			touched = append(touched, m.store.put(event.Resource, false)...)
		case state.Destroyed:
			touched = append(touched, m.store.put(event.Resource, true)...)
		case state.Errored:
			m.tell(distinct(touched))

			return event.Error
		case state.Bootstrapped, state.Noop:
		}
	}

	m.tell(distinct(touched))

	return nil
}

func (m *Mirror) tell(clusters []string) {
	slices.Sort(clusters)

	for _, cluster := range clusters {
		m.options.ClusterChanged(cluster)
	}
}
