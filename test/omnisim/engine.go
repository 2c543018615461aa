package omnisim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// settle is how long the engine waits after a change for further changes, so that a template that arrives as thirty
// writes takes a few passes, not thirty.
const settle = 5 * time.Millisecond

// engine does the work of Omni's controllers: it watches the clients' writes and advances statuses and machines, one
// step per phase. It is level-triggered: a pass over a cluster reads everything the cluster has, does what can be done
// now, and records whether time has to pass.
type engine struct {
	state   state.State
	version *speaks
	phase   time.Duration
	manual  bool
	logf    func(format string, args ...any)

	cancel context.CancelFunc
	done   chan struct{}
	events chan []state.Event
	calls  chan func(context.Context) // functions that other goroutines run in the loop

	// Only the loop uses the following fields.
	paused   bool
	now      int64                 // steps since the start
	dirty    map[string]struct{}   // clusters to reconcile
	waiting  map[string]struct{}   // clusters that need time
	since    map[string]sinceValue // when a value last changed
	applied  map[string]string     // configuration that a machine has
	turn     map[string]string     // by cluster: the machine that is being upgraded
	dead     map[string]int64      // machines that stopped answering, and at which step
	shutDown map[string]bool       // those among them that were shut down
	members  map[string]struct{}   // control plane machines whose etcd has joined
	refusing map[string]string     // machines that refuse any new configuration, and with which error
	problems map[string]*problems  // by cluster: what keeps manifests from being applied
	failing  map[string]string     // machine sets for which no machine can be made, and with which error
	arrived  map[string]struct{}   // machines whose link changed
	machines bool                  // whether to reconcile machines
}

// sinceValue is a value and the step at which it was first seen.
type sinceValue struct {
	value string
	step  int64
}

func newEngine(resources state.State, options Options, version *speaks) *engine {
	return &engine{
		state:    resources,
		version:  version,
		phase:    options.Phase,
		manual:   options.Manual,
		logf:     options.Logf,
		done:     make(chan struct{}),
		events:   make(chan []state.Event),
		calls:    make(chan func(context.Context)),
		dirty:    map[string]struct{}{},
		waiting:  map[string]struct{}{},
		since:    map[string]sinceValue{},
		applied:  map[string]string{},
		turn:     map[string]string{},
		dead:     map[string]int64{},
		shutDown: map[string]bool{},
		members:  map[string]struct{}{},
		refusing: map[string]string{},
		problems: map[string]*problems{},
		failing:  map[string]string{},
		arrived:  map[string]struct{}{},
	}
}

// watchedTypes are the types whose events wake the engine.
func watchedTypes() []resource.Type {
	return []resource.Type{
		omni.ClusterType, omni.MachineSetType, omni.MachineSetNodeType, omni.ConfigPatchType,
		omni.ExtensionsConfigurationType, omni.KubernetesManifestGroupType, omni.KubernetesHealthCheckType,
		omni.KernelArgsType, omni.MachineClassType, omni.MachineLabelsType, siderolink.LinkType, operator.MachineInstallDiskConfigType,
	}
}

func (e *engine) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel

	for _, resourceType := range watchedTypes() {
		kind := resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)
		if err := e.state.WatchKindAggregated(ctx, kind, e.events, state.WithBootstrapContents(true)); err != nil {
			cancel()

			return fmt.Errorf("watch %s: %w", resourceType, err)
		}
	}

	go e.run(ctx)

	return nil
}

func (e *engine) stop() {
	e.cancel()
	<-e.done
}

// run is the engine's only goroutine.
func (e *engine) run(ctx context.Context) {
	defer close(e.done)

	var ticks <-chan time.Time

	if !e.manual {
		ticker := time.NewTicker(e.phase)
		defer ticker.Stop()

		ticks = ticker.C
	}

	var settled <-chan time.Time

	for {
		select {
		case <-ctx.Done():
			return
		case events := <-e.events:
			e.note(events)

			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil

			e.pass(ctx)
		case <-ticks:
			e.tick(ctx)
		case call := <-e.calls:
			call(ctx)
		}
	}
}

// drain records the events that have already arrived.
func (e *engine) drain() {
	for {
		select {
		case events := <-e.events:
			e.note(events)
		case <-time.After(settle):
			return
		}
	}
}

// note marks the clusters that events are about.
func (e *engine) note(events []state.Event) {
	for _, event := range events {
		if event.Resource == nil {
			continue
		}

		switch md := event.Resource.Metadata(); md.Type() {
		case omni.ClusterType:
			e.dirty[md.ID()] = struct{}{}
		case siderolink.LinkType:
			e.machines = true
			e.arrived[md.ID()] = struct{}{}
		case omni.MachineClassType, omni.MachineLabelsType, omni.KernelArgsType, operator.MachineInstallDiskConfigType:
			e.machines = true
		default:
			if name, ok := md.Labels().Get(omni.LabelCluster); ok {
				e.dirty[name] = struct{}{}
			}

			// Another set may wait for a machine that a set releases.
			e.machines = e.machines || md.Type() == omni.MachineSetNodeType
		}
	}
}

// tick advances the time by one step.
func (e *engine) tick(ctx context.Context) {
	if e.paused {
		return
	}

	e.now++
	e.machines = e.machines || len(e.dead) > 0

	maps.Copy(e.dirty, e.waiting)
	clear(e.waiting)
	e.pass(ctx)
}

// pass reconciles everything that is marked. Failures are retried with the next step.
func (e *engine) pass(ctx context.Context) {
	if e.paused {
		return
	}

	if e.machines {
		e.machines = false

		if err := e.reconcileMachines(ctx); err != nil && ctx.Err() == nil {
			e.machines = true
			e.logf("omnisim: machines: %v", err)
		}
	}

	marked := slices.Sorted(maps.Keys(e.dirty))
	clear(e.dirty)

	for _, name := range marked {
		if ctx.Err() != nil {
			return
		}

		if err := e.reconcileCluster(ctx, name); err != nil && ctx.Err() == nil {
			e.waiting[name] = struct{}{}
			e.logf("omnisim: cluster %q: %v", name, err)
		}
	}
}

// elapsed reports whether the value of key has been the same for that many steps. If not, the cluster is reconciled
// again with the next step.
func (e *engine) elapsed(cluster, key, value string, steps int64) bool {
	seen, ok := e.since[key]
	if !ok || seen.value != value {
		seen = sinceValue{value: value, step: e.now}
		e.since[key] = seen
	}

	if e.now-seen.step >= steps {
		return true
	}

	e.waiting[cluster] = struct{}{}

	return false
}

func (e *engine) forget(keys ...string) {
	for _, key := range keys {
		delete(e.since, key)
	}
}

// call runs a function in the engine's loop and returns when it is done, or when the engine stops.
func (e *engine) call(do func(context.Context)) {
	done := make(chan struct{})

	select {
	case e.calls <- func(ctx context.Context) { do(ctx); close(done) }:
	case <-e.done:
		return
	}

	select {
	case <-done:
	case <-e.done:
	}
}

// Pause stops the engine: nothing changes, so a test can set statuses through Unchecked.
func (s *Server) Pause() { s.engine.call(func(context.Context) { s.engine.paused = true }) }

// Resume continues the engine after Pause. It overwrites what a test set as soon as anything of the cluster changes.
func (s *Server) Resume() { s.engine.call(func(context.Context) { s.engine.paused = false }) }

// Step advances the time by one phase and returns when the engine has done everything that follows from it. It is meant
// for Options.Manual, where time does not pass by itself, and for the time after Pause.
func (s *Server) Step() {
	s.engine.call(func(ctx context.Context) {
		paused := s.engine.paused
		defer func() { s.engine.paused = paused }()

		s.engine.paused = false

		s.engine.drain()
		s.engine.pass(ctx)
		s.engine.tick(ctx)
		s.engine.drain()
		s.engine.pass(ctx)
	})
}
