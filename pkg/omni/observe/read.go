package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

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
