// Package mirror keeps the local copy of one Omni: the few resource types that plans and statuses need, of all
// clusters, kept current by one COSI watch each.
//
// Plans and statuses are read from the copy, so an idle fleet costs Omni nothing. The copy is read-only, and maps each
// change to the cluster it concerns. Until the copy shows our own writes, Ready returns ErrBehind for their cluster.
// The mirror opens a lost watch again with growing pauses; Health reports since when it is lost and why.
//
// Package session starts one mirror for each connection.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// Timeouts and intervals of the mirror.
const (
	// bootstrapTimeout bounds a watch from its request to the end of its first contents.
	bootstrapTimeout = 60 * time.Second
	// resyncMinDelay and resyncMaxDelay bound the pause before a lost watch is opened again: it doubles each time, and is
	// shortened by up to half at random. The first watch that succeeds ends the pauses of the others, so after an outage
	// all of them are back soon after the first.
	resyncMinDelay = 500 * time.Millisecond
	resyncMaxDelay = 15 * time.Second
	// awayFirstDelay and awayDelay are the pauses of the first kind's watch and of the others while none can be opened, shortened by
	// up to half at random: see pauseOfOutage.
	awayFirstDelay = 2 * time.Second
	awayDelay      = 2 * time.Minute
	// writeVisibleTimeout is how long the mirror waits for one of our own writes. Afterwards it no longer reports
	// ErrBehind for it, and opens the watch again that has not shown it.
	writeVisibleTimeout = 10 * time.Second
	// watchLife is the age at which a watch is opened again, shortened by up to half at random. It bounds how long a dead
	// stream goes unnoticed.
	watchLife = time.Hour
)

// Options configures a Mirror. Every field may be zero.
type Options struct {
	// ClusterChanged is called with the name of a cluster in Omni for every change that concerns it, managed or not. It
	// must not block and may be called from several goroutines.
	ClusterChanged func(cluster string)
	// HealthChanged is called after Health changed. It must not block.
	HealthChanged func()
	// ResyncMinDelay and ResyncMaxDelay replace the defaults.
	ResyncMinDelay, ResyncMaxDelay time.Duration
	// AwayFirstDelay and AwayDelay replace the defaults.
	AwayFirstDelay, AwayDelay time.Duration
	// BootstrapTimeout replaces the default.
	BootstrapTimeout time.Duration
	// WriteVisibleTimeout replaces the default.
	WriteVisibleTimeout time.Duration
	// WatchLife replaces the default.
	WatchLife time.Duration
	// Now replaces time.Now.
	Now func() time.Time

	// Served reports whether Omni serves a type. An optional kind that it does not serve is not watched: nothing of it can
	// exist. Nil: every kind is served.
	Served func(resource.Type) bool
	// Version is what Omni said of itself before the start; the zero value if it did not. As soon as Omni says something
	// else, what it serves may be another: the mirror ends for good, before it shows anything of the other version.
	Version omni.Version
	// Upgraded is called when the mirror has ended for good because Omni is another version. It must not block.
	Upgraded func()
	// Overflowed is called when the mirror has ended for good because Omni sent too much. It must not block.
	Overflowed func(error)
	// Open opens the account that bounds the memory of the copy; nil: no bound.
	Open func(over func(error)) *bounds.Account
}

func (o Options) withDefaults() Options {
	if o.ClusterChanged == nil {
		o.ClusterChanged = func(string) {}
	}

	if o.HealthChanged == nil {
		o.HealthChanged = func() {}
	}

	if o.Served == nil {
		o.Served = func(resource.Type) bool { return true }
	}

	if o.Upgraded == nil {
		o.Upgraded = func() {}
	}

	if o.Overflowed == nil {
		o.Overflowed = func(error) {}
	}

	if o.Open == nil {
		o.Open = func(func(error)) *bounds.Account { return nil }
	}

	if o.Now == nil {
		o.Now = time.Now
	}

	for _, field := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.ResyncMinDelay, resyncMinDelay},
		{&o.ResyncMaxDelay, resyncMaxDelay},
		{&o.AwayFirstDelay, awayFirstDelay},
		{&o.AwayDelay, awayDelay},
		{&o.BootstrapTimeout, bootstrapTimeout},
		{&o.WriteVisibleTimeout, writeVisibleTimeout},
		{&o.WatchLife, watchLife},
	} {
		if *field.value <= 0 {
			*field.value = field.standard
		}
	}

	return o
}

// Mirror is the local copy of one Omni's resources: Cluster, MachineSet, MachineSetNode, ConfigPatch,
// ExtensionsConfiguration, KubernetesManifestGroup, KubernetesHealthCheck, KernelArgs, MachineInstallDiskConfig, the version of
// Omni, and the statuses ClusterStatus,
// MachineSetStatus, ClusterMachineStatus, ControlPlaneStatus, LoadBalancerStatus, KubernetesUpgradeStatus,
// TalosUpgradeStatus, MachineStatus, ClusterUUID, ClusterKubernetesManifestsStatus, ClusterMachineRequestStatus (while the
// machine does not belong to the cluster). It holds those of all clusters, to detect collisions by ID. It is safe for
// concurrent use.
type Mirror struct {
	source  state.CoreState
	options Options
	store   *store
	writes  *writes
	renew   renewals
	health  *healthKeeper
	account *bounds.Account
	limits  map[resource.Type]*int // of one message of a watch, in bytes; only its watch's goroutine uses it
	stop    context.CancelFunc
	running sync.WaitGroup

	reopening sync.Mutex
	reopened  chan struct{} // closed to end the pauses of lost watches
}

// Start opens the watches and returns at once; Synced and HealthChanged report when the copy is complete. The mirror
// runs until ctx ends or Stop is called.
func Start(ctx context.Context, source state.CoreState, options Options) *Mirror {
	ctx, stop := context.WithCancel(ctx)

	omni.RegisterTypes()

	m := &Mirror{source: source, options: options.withDefaults(), store: newStore(mirroredKinds()), stop: stop, reopened: make(chan struct{})}
	kinds := m.servedKinds()
	m.writes, m.renew = newWrites(m.options.WriteVisibleTimeout, m.options.Now), newRenewals(kinds)
	m.health = newHealthKeeper(kinds, m.options.Now)
	m.account, m.limits = m.options.Open(m.overflow), map[resource.Type]*int{}

	for _, kind := range kinds {
		m.limits[kind.resourceType] = new(bounds.FirstEvent)
	}

	for _, kind := range kinds {
		m.running.Go(func() { m.follow(ctx, kind.resourceType) })
	}

	return m
}

// Stop ends the watches and waits for them. The copy stays readable.
func (m *Mirror) Stop() {
	m.stop()
	m.Wait()
	m.account.Close()
}

// Wait returns when the mirror has ended.
func (m *Mirror) Wait() { m.running.Wait() }

// Synced reports whether the copy is complete and every watch runs now.
func (m *Mirror) Synced() bool { return m.health.synced() }

// Health returns the state of the copy, and if it is not synced, since when and why.
func (m *Mirror) Health() Health { return m.health.get() }

// State returns the copy as a read-only COSI state for the library's template functions. Reads fail with ErrNotSynced
// until the copy is complete for the first time; after that they work even while a watch is lost, so call Ready before
// planning. Writes and watches fail with ErrReadOnly.
func (m *Mirror) State() state.State { return state.WrapCore(&mirrorState{store: m.store}) }

// Ready returns nil if a plan for the cluster may be made from the copy now. Errors: ErrNotSynced before the copy is
// complete and while a watch is lost, ErrBehind while it does not show our own last writes to this cluster (for at most
// writeVisibleTimeout). The mirror calls HealthChanged or ClusterChanged when that is over; only the timeout of
// ErrBehind passes without a call, so retry after about a second.
func (m *Mirror) Ready(cluster string) error {
	if health := m.Health(); !health.Synced {
		return fmt.Errorf("%w: %s", omni.ErrNotSynced, health.Message)
	}

	waiting, unseen := m.writes.outstanding(cluster, m.store)
	for _, resourceType := range unseen {
		m.renew.ask(resourceType)
	}

	if waiting != "" {
		return fmt.Errorf("%w: %s", omni.ErrBehind, waiting)
	}

	return nil
}

// Await records which resources of other clusters a cluster waits for: every change of them concerns that cluster, too,
// whether or not Omni already has it. The call replaces the keys of earlier ones; without keys, the cluster waits for
// nothing. Await reports whether any key is new: its change may have been missed.
func (m *Mirror) Await(cluster string, keys []omni.ResourceKey) (added bool) {
	return m.store.await(cluster, keys)
}

// Expect records one of our writes, with Omni's answer: until the copy shows it, Ready returns ErrBehind for the
// cluster.
func (m *Mirror) Expect(cluster string, written resource.Metadata, effect omni.Effect) {
	m.writes.expect(cluster, written, effect)
}

// clusterSource is where a resource of one type has the name of its cluster.
type clusterSource int

const (
	fromID      clusterSource = iota // the ID is the cluster's name
	fromLabel                        // the cluster label
	fromMachine                      // the ID is a machine's UUID
)

// mirroredKind is one resource type that the mirror watches.
type mirroredKind struct {
	resourceType resource.Type
	clusterFrom  clusterSource
}

// mirroredKinds returns every type that planning and observing read, and the version. The Reader role may list and watch
// them.
func mirroredKinds() []mirroredKind {
	return []mirroredKind{
		{omnires.ClusterType, fromID},
		{omnires.MachineSetType, fromLabel},
		{omnires.MachineSetNodeType, fromLabel},
		{omnires.ConfigPatchType, fromLabel},
		{omnires.ExtensionsConfigurationType, fromLabel},
		{omnires.KubernetesManifestGroupType, fromLabel},
		{omnires.KubernetesHealthCheckType, fromLabel},
		{omnires.KernelArgsType, fromMachine},
		{omnires.ClusterStatusType, fromID},
		{omnires.MachineSetStatusType, fromLabel},
		{omnires.ClusterMachineStatusType, fromLabel},
		{omnires.ControlPlaneStatusType, fromLabel},
		{omnires.LoadBalancerStatusType, fromID},
		{omnires.KubernetesUpgradeStatusType, fromID},
		{omnires.TalosUpgradeStatusType, fromID},
		{omnires.MachineStatusType, fromMachine},
		{omnires.ClusterUUIDType, fromID},
		{omnires.ClusterKubernetesManifestsStatusType, fromID},
		{omnires.ClusterMachineRequestStatusType, fromLabel},
		{omni.MachineInstallDiskConfigType, fromMachine},
		{omni.KubernetesHealthCheckStatusType, fromLabel},
		{system.SysVersionType, fromLabel}, // of no cluster
	}
}

// isOptional reports whether an Omni that does not serve a kind can be used: KubernetesHealthChecks are served since 1.9, their
// statuses and MachineInstallDiskConfigs since 1.11.
func isOptional(resourceType resource.Type) bool {
	return slices.Contains([]resource.Type{
		omnires.KubernetesHealthCheckType, omni.KubernetesHealthCheckStatusType, omni.MachineInstallDiskConfigType, system.SysVersionType,
	}, resourceType)
}

// Kinds returns the types that a mirror watches if Omni serves them.
func Kinds() []resource.Type {
	var kinds []resource.Type

	for _, kind := range mirroredKinds() {
		kinds = append(kinds, kind.resourceType)
	}

	return kinds
}

// RequiredKinds returns the types without which nothing can be planned.
func RequiredKinds() []resource.Type {
	var required []resource.Type

	for _, kind := range mirroredKinds() {
		if !isOptional(kind.resourceType) {
			required = append(required, kind.resourceType)
		}
	}

	return required
}

// servedKinds returns the kinds to watch. The tables of the others are complete: they stay empty.
func (m *Mirror) servedKinds() []mirroredKind {
	return slices.DeleteFunc(mirroredKinds(), func(kind mirroredKind) bool {
		left := isOptional(kind.resourceType) && !m.options.Served(kind.resourceType)
		m.store.tables[kind.resourceType].bootstrapped = left

		return left
	})
}

// Serves reports whether Omni serves one of the mirrored types.
func (m *Mirror) Serves(resourceType resource.Type) bool { return m.options.Served(resourceType) }

// namespaceOf returns the namespace of a mirrored type in Omni.
func namespaceOf(resourceType resource.Type) resource.Namespace {
	if resourceType == system.SysVersionType || resourceType == omni.KubernetesHealthCheckStatusType {
		return resources.EphemeralNamespace
	}

	return resources.DefaultNamespace
}

// selection returns which resources of a type are watched: all, but of the requests for machines only those whose machine does not
// belong to a cluster yet. The others say nothing that the machine's own status does not, and a fleet has one for each machine.
func selection(resourceType resource.Type) []state.WatchKindOption {
	if resourceType != omnires.ClusterMachineRequestStatusType {
		return nil
	}

	return []state.WatchKindOption{state.WatchWithLabelQuery(resource.LabelExists(omnires.LabelMachineRequestInUse, resource.NotMatches))}
}
