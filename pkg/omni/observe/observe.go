// Package observe reads what is shown to users: the status of a cluster, whether it runs as configured, how far its
// deletion is and what blocks it, and the cluster as a template for the command export. It only reads, from the state
// that the caller passes: the local copy (Session.Copy) or Omni itself (Session.Live).
package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Machines are Omni's counts of machines.
type Machines struct {
	// Total is the number of machines that belong to the set or cluster.
	Total uint32
	// Connected is how many of them are connected to Omni.
	Connected uint32
	// Healthy is how many of them run as configured.
	Healthy uint32
	// Requested is how many there should be, as Omni last computed it.
	Requested uint32
}

// Upgrade is the state of a Kubernetes or Talos upgrade.
type Upgrade struct {
	// Known is false if Omni has no such resource (yet).
	Known bool
	// Phase is Unknown, Upgrading, Done, Failed, Reverting or UpdatingMachineSchematics.
	Phase string
	// Step is the current step and what it waits for; Error is why the upgrade failed, or what keeps it from going on. Both are
	// bounded.
	Step, Error string
	// Version is the version that was last reached, without a leading v.
	Version string
	// Updated is when Omni last wrote this, by its clock.
	Updated time.Time
}

// MachineSet is the state of one machine set.
type MachineSet struct {
	// ID is the ID in Omni; Name is the ID without the cluster's name, as in a template ("control-planes" for the control
	// plane).
	ID, Name string
	// ControlPlane is true for the control plane's set.
	ControlPlane bool
	// Created is when Omni made the set, by its clock.
	Created time.Time
	// Backup is the backup from which Omni makes the etcd of a control plane, in the form of omni.BackupOf; empty if there is none.
	Backup string
	// Class is the machine class; empty for a static set.
	Class string
	// Desired is how many machines the set requests now; for an unlimited class, how many it has.
	Desired uint32
	// Known is false if Omni has not computed a status yet.
	Known bool
	// Phase is Unknown, ScalingUp, ScalingDown, Running, Destroying, Failed, Reconfiguring or Upgrading.
	Phase string
	// Ready is Omni's own assessment.
	Ready bool
	// Error is Omni's error text, bounded.
	Error string
	// Machines counts the set's machines.
	Machines Machines
	// Requests are those that a provider is to make for the set; empty if its class takes machines that are there.
	Requests Requests
	// LockedUpdates is the number of locked machines with a pending update.
	LockedUpdates uint32
	// TearingDown is true while Omni destroys the set.
	TearingDown bool
}

// Machine is the state of one machine of a cluster.
type Machine struct {
	// ID is the machine's UUID.
	ID string
	// MachineSet is the ID of its set.
	MachineSet string
	// Stage is Unknown, Booting, Installing, Upgrading, Configuring, Running,
	// Rebooting, ShuttingDown, BeforeDestroy, Destroying, PoweringOn, PoweredOff.
	Stage string
	// Ready is Omni's assessment of the machine's services.
	Ready bool
	// Registered is false if Omni does not know the machine: it never connected, or its UUID is mistyped.
	Registered bool
	// Connected reports whether the machine is connected to Omni.
	Connected bool
	// Locked is true if updates of the machine are locked.
	Locked bool
	// ConfigUpToDate is false until the machine has applied its current configuration.
	ConfigUpToDate bool
	// Error is the last configuration error, bounded.
	Error string
}

// RefusesConfiguration reports whether the machine did not take its current configuration because of an error.
func (m Machine) RefusesConfiguration() bool { return m.Error != "" && !m.ConfigUpToDate }

// Status is everything that Omni reports about a cluster.
type Status struct {
	// Exists is false if Omni has no such cluster; the rest is empty then.
	Exists bool
	// Name is the cluster's name in Omni.
	Name string
	// TearingDown is true while Omni destroys the cluster.
	TearingDown bool
	// UUID is the cluster's identity; empty for a moment after its creation.
	UUID string
	// Known is false until Omni has computed a cluster status.
	Known bool
	// Phase is Unknown, ScalingUp, ScalingDown, Running or Destroying.
	Phase string
	// KubernetesVersion and TalosVersion are the configured versions, without a leading v.
	KubernetesVersion, TalosVersion string
	// Ready, Available, KubernetesAPIReady, ControlPlaneReady and ConnectedControlPlanes are Omni's own assessments.
	Ready, Available, KubernetesAPIReady, ControlPlaneReady, ConnectedControlPlanes bool
	// LoadBalancerKnown is false if Omni has no load balancer status.
	LoadBalancerKnown bool
	// LoadBalancerHealthy is true if the Kubernetes API answers through Omni's load balancer; false also while the load
	// balancer is stopped.
	LoadBalancerHealthy bool
	// ControlPlaneProblems are the control plane's conditions that are not ready, one line each, sorted.
	ControlPlaneProblems []string
	// Machines counts the cluster's machines.
	Machines Machines
	// Kubernetes and Talos are the states of the upgrades.
	Kubernetes, Talos Upgrade
	// MachineSets are sorted by ID, MachineList by machine ID.
	MachineSets []MachineSet
	MachineList []Machine
	// FailedChecks are the KubernetesHealthChecks whose last run failed, one line each, sorted: the name in a template, the error and
	// the output. Who wrote the check decides what is in them. Omni tells from 1.11 on.
	FailedChecks []string
	// Manifests are the Kubernetes objects that Omni applies; empty until it has looked at them.
	Manifests Manifests
}

// Observe reads a cluster's Status, usually from a mirror's state. A missing
// cluster is not an error.
func Observe(ctx context.Context, st state.State, cluster string) (Status, error) {
	observer := observer{ctx: ctx, state: st, cluster: cluster}

	observer.readCluster()
	observer.readSets()
	observer.readRequests()
	observer.readMachines()
	observer.readManifests()
	observer.readChecks()

	if observer.err != nil {
		return Status{}, fmt.Errorf("observe cluster %q: %w", cluster, observer.err)
	}

	if !observer.status.Exists {
		return Status{}, nil
	}

	return observer.status, nil
}

// maxDetailBytes bounds one text from Omni inside a Status.
const maxDetailBytes = 256

func detail(text string) string { return redact.Bounded(omni.Sanitize(text), maxDetailBytes) }

// observer collects a Status and keeps the first error.
type observer struct {
	ctx     context.Context //nolint:containedctx // lives for one call of Observe
	state   state.State
	cluster string
	status  Status
	err     error
}

// read calls fill with the resource of that ID, if it exists.
func read[T meta.ResourceWithRD](o *observer, id string, fill func(T)) {
	if o.err != nil {
		return
	}

	found, err := safe.StateGetByID[T](o.ctx, o.state, id)

	switch {
	case state.IsNotFoundError(err):
	case err != nil:
		o.err = err
	default:
		fill(found)
	}
}

// each calls fill with the cluster's resources of a type, sorted by ID.
func each[T meta.ResourceWithRD](o *observer, fill func(T)) {
	if o.err != nil {
		return
	}

	list, err := safe.StateListAll[T](o.ctx, o.state,
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, o.cluster)))
	if err != nil {
		o.err = err

		return
	}

	items := slices.Collect(list.All())
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(a.Metadata().ID(), b.Metadata().ID()) })

	for _, item := range items {
		fill(item)
	}
}

func (o *observer) readCluster() {
	status := &o.status

	read(o, o.cluster, func(found *omnires.Cluster) {
		spec := found.TypedSpec().Value
		status.Exists, status.Name = true, o.cluster
		status.TearingDown = found.Metadata().Phase() == resource.PhaseTearingDown
		status.KubernetesVersion, status.TalosVersion = spec.GetKubernetesVersion(), spec.GetTalosVersion()
	})
	read(o, o.cluster, func(found *omnires.ClusterUUID) { status.UUID = found.TypedSpec().Value.GetUuid() })
	read(o, o.cluster, func(found *omnires.ClusterStatus) {
		spec := found.TypedSpec().Value
		status.Known = true
		status.Phase = camel(spec.GetPhase().String())
		status.Ready, status.Available = spec.GetReady(), spec.GetAvailable()
		status.KubernetesAPIReady, status.ControlPlaneReady = spec.GetKubernetesAPIReady(), spec.GetControlplaneReady()
		status.ConnectedControlPlanes = spec.GetHasConnectedControlPlanes()
		status.Machines = machinesOf(spec.GetMachines())
	})
	read(o, o.cluster, func(found *omnires.LoadBalancerStatus) {
		spec := found.TypedSpec().Value
		status.LoadBalancerKnown = true
		status.LoadBalancerHealthy = spec.GetHealthy() && !spec.GetStopped()
	})
	read(o, o.cluster, func(found *omnires.KubernetesUpgradeStatus) {
		spec := found.TypedSpec().Value
		status.Kubernetes = Upgrade{
			Known: true, Phase: spec.GetPhase().String(), Step: detail(doing(spec.GetStep(), spec.GetStatus())), Error: detail(spec.GetError()),
			Version: spec.GetLastUpgradeVersion(), Updated: found.Metadata().Updated(),
		}
	})
	read(o, o.cluster, func(found *omnires.TalosUpgradeStatus) {
		spec := found.TypedSpec().Value
		status.Talos = Upgrade{
			Known: true, Phase: spec.GetPhase().String(), Step: detail(doing(spec.GetStep(), spec.GetStatus())), Error: detail(spec.GetError()),
			Version: spec.GetLastUpgradeVersion(), Updated: found.Metadata().Updated(),
		}
	})
	each(o, func(found *omnires.ControlPlaneStatus) {
		for _, condition := range found.TypedSpec().Value.GetConditions() {
			if condition.GetStatus() == specs.ControlPlaneStatusSpec_Condition_NotReady {
				status.ControlPlaneProblems = append(status.ControlPlaneProblems,
					fmt.Sprintf("%s: %s", condition.GetType(), detail(condition.GetReason())))
			}
		}
	})
	slices.Sort(status.ControlPlaneProblems)
}

func (o *observer) readChecks() {
	each(o, func(found *omni.KubernetesHealthCheckStatus) {
		spec := found.TypedSpec()
		if spec.State != omni.HealthCheckFailed {
			return
		}

		line := strings.TrimPrefix(found.Metadata().ID(), o.cluster+"-") + ": " + detail(cmp.Or(spec.Error, "failed"))
		if output := detail(spec.Output); output != "" {
			line += ", output: " + output
		}

		o.status.FailedChecks = append(o.status.FailedChecks, line)
	})
}

func (o *observer) readSets() {
	nodes := map[string]uint32{}

	each(o, func(node *omnires.MachineSetNode) {
		set, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)
		nodes[set]++
	})

	each(o, func(found *omnires.MachineSet) {
		id := found.Metadata().ID()
		size := omni.SizeOf(found, int(nodes[id]))
		set := MachineSet{
			ID:          id,
			Name:        strings.TrimPrefix(id, o.cluster+"-"),
			Class:       size.Class,
			Desired:     size.Count,
			Created:     found.Metadata().Created(),
			Backup:      omni.BackupOf(found),
			TearingDown: found.Metadata().Phase() == resource.PhaseTearingDown,
		}

		if size.Unlimited {
			set.Desired = nodes[id]
		}

		_, set.ControlPlane = found.Metadata().Labels().Get(omnires.LabelControlPlaneRole)

		read(o, id, func(status *omnires.MachineSetStatus) {
			spec := status.TypedSpec().Value
			set.Known = true
			set.Phase, set.Ready, set.Error = spec.GetPhase().String(), spec.GetReady(), detail(spec.GetError())
			set.Machines, set.LockedUpdates = machinesOf(spec.GetMachines()), spec.GetLockedUpdates()
		})

		o.status.MachineSets = append(o.status.MachineSets, set)
	})
}

func (o *observer) readMachines() {
	machines := map[string]*Machine{}
	machine := func(id string) *Machine {
		if machines[id] == nil {
			machines[id] = &Machine{ID: id, Stage: "Unknown"}
		}

		return machines[id]
	}

	each(o, func(node *omnires.MachineSetNode) {
		m := machine(node.Metadata().ID())
		m.MachineSet, _ = node.Metadata().Labels().Get(omnires.LabelMachineSet)
		_, m.Locked = node.Metadata().Annotations().Get(omnires.MachineLocked)
	})
	each(o, func(found *omnires.ClusterMachineStatus) {
		spec := found.TypedSpec().Value
		m := machine(found.Metadata().ID())
		m.Stage, m.Ready = camel(spec.GetStage().String()), spec.GetReady()
		m.ConfigUpToDate, m.Error = spec.GetConfigUpToDate(), detail(spec.GetLastConfigError())

		if set, labelled := found.Metadata().Labels().Get(omnires.LabelMachineSet); labelled {
			m.MachineSet = set
		}
	})

	// By ID: a machine that waits for its set has no cluster label yet.
	for _, m := range machines {
		read(o, m.ID, func(found *omnires.MachineStatus) {
			m.Registered, m.Connected = true, found.TypedSpec().Value.GetConnected()
		})
		o.status.MachineList = append(o.status.MachineList, *m)
	}

	slices.SortFunc(o.status.MachineList, func(a, b Machine) int { return cmp.Compare(a.ID, b.ID) })
}

func machinesOf(counts *specs.Machines) Machines {
	return Machines{
		Total: counts.GetTotal(), Connected: counts.GetConnected(), Healthy: counts.GetHealthy(), Requested: counts.GetRequested(),
	}
}

// doing joins what an upgrade does with what it waits for, which Omni tells apart: a machine that is locked, a cluster that is
// not ready, the images. Either may be empty.
func doing(step, waits string) string {
	return strings.Trim(strings.TrimSpace(step)+": "+strings.TrimSpace(waits), ": ")
}

// camel turns SCALING_UP into ScalingUp, the form of the other enumerations.
func camel(name string) string {
	var out strings.Builder

	for word := range strings.SplitSeq(strings.ToLower(name), "_") {
		if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}

	return out.String()
}
