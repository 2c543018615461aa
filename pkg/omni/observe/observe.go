package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
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

	if observer.err != nil {
		return Status{}, fmt.Errorf("observe cluster %q: %w", cluster, observer.err)
	}

	if !observer.status.Exists {
		return Status{}, nil
	}

	return observer.status, nil
}
