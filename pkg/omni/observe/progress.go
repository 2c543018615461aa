package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Blocker is a machine that Omni has to free before a cluster is gone.
type Blocker struct {
	// Machine is the machine's UUID.
	Machine string
	// MachineSet is the ID of its set; empty if unknown.
	MachineSet string
	// Connected reports whether the machine is connected to Omni. A machine that is not connected cannot be reset.
	Connected bool
	// PoweredOff is true for a machine that is not connected and that Omni does not count as disconnected, because it was shut
	// down or its provider knows its power state.
	PoweredOff bool
	// Waits is true while Omni has not begun to remove the machine, because something has to be as it should first.
	Waits bool
	// Since is when the teardown of the machine, its set or its cluster was requested; zero if unknown.
	Since time.Time
}

func (b *Blocker) learn(item resource.Resource) {
	metadata := item.Metadata()

	if set, labelled := metadata.Labels().Get(omnires.LabelMachineSet); labelled {
		b.MachineSet = set
	}

	if status, ok := item.(*omnires.MachineStatus); ok {
		b.learnConnection(status)
	}

	if status, ok := item.(*omnires.ClusterMachineStatus); ok {
		b.Waits = status.TypedSpec().Value.GetStage() == specs.ClusterMachineStatusSpec_BEFORE_DESTROY
	}

	// Only the start of a teardown sets Since: Omni updates the status of a machine all the time, and a message with those
	// times would be rewritten all the time, too.
	if metadata.Phase() == resource.PhaseTearingDown && (b.Since.IsZero() || metadata.Updated().Before(b.Since)) {
		b.Since = metadata.Updated()
	}
}

func (b *Blocker) learnConnection(status *omnires.MachineStatus) {
	_, disconnected := status.Metadata().Labels().Get(omnires.MachineStatusLabelDisconnected)
	b.Connected = status.TypedSpec().Value.GetConnected()
	b.PoweredOff = !b.Connected && !disconnected
}

// DeleteProgress is how far the deletion of a cluster is.
type DeleteProgress struct {
	// Gone is true if Omni has no such cluster any more.
	Gone bool
	// TearingDown is true once the teardown was requested.
	TearingDown bool
	// Since is when the teardown was requested.
	Since time.Time
	// Blockers are the machines that still belong to the cluster, those that are not connected first, then by ID.
	Blockers []Blocker
	// Finalizers are Omni's own controllers that have not finished, sorted.
	Finalizers []string
}

// Progress reads how far the deletion of a cluster is.
func Progress(ctx context.Context, st state.State, cluster string) (DeleteProgress, error) {
	found, err := st.Get(ctx, omnires.NewCluster(cluster).Metadata())
	if state.IsNotFoundError(err) {
		return DeleteProgress{Gone: true}, nil
	}

	if err != nil {
		return DeleteProgress{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}

	metadata := found.Metadata()
	progress := DeleteProgress{Finalizers: slices.Sorted(slices.Values(*metadata.Finalizers()))}

	if metadata.Phase() == resource.PhaseTearingDown {
		progress.TearingDown, progress.Since = true, metadata.Updated()
	}

	progress.Blockers, err = blockers(ctx, st, cluster)

	for i := range progress.Blockers {
		if blocker := &progress.Blockers[i]; blocker.Since.IsZero() {
			blocker.Since = progress.Since
		}
	}

	return progress, err
}

// blockers merges the three resources that bind a machine to a cluster; Omni removes them one after the other.
func blockers(ctx context.Context, st state.State, cluster string) ([]Blocker, error) {
	found := map[string]*Blocker{}

	for _, resourceType := range []resource.Type{
		omnires.MachineStatusType, omnires.ClusterMachineStatusType, omnires.MachineSetNodeType,
	} {
		items, err := omni.ListOf(ctx, st, resourceType, cluster)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			id := item.Metadata().ID()
			if found[id] == nil {
				found[id] = &Blocker{Machine: id}
			}

			found[id].learn(item)
		}
	}

	if err := learnLinks(ctx, st, found); err != nil {
		return nil, err
	}

	going, err := setsGoing(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	sorted := make([]Blocker, 0, len(found))

	for _, blocker := range found {
		// Omni may have removed the MachineSetNode already.
		if blocker.Since.IsZero() {
			blocker.Since = going[blocker.MachineSet]
		}

		sorted = append(sorted, *blocker)
	}

	slices.SortFunc(sorted, func(a, b Blocker) int {
		if a.Connected != b.Connected {
			if b.Connected {
				return -1
			}

			return 1
		}

		return cmp.Compare(a.Machine, b.Machine)
	})

	return sorted, nil
}

// learnLinks reads whether machines are connected where the cluster's own resources do not show it: Omni removes the
// cluster label from the status of a machine before the machine's other resources are gone.
func learnLinks(ctx context.Context, st state.State, found map[string]*Blocker) error {
	for id, blocker := range found {
		if blocker.Connected {
			continue
		}

		status, err := safe.StateGetByID[*omnires.MachineStatus](ctx, st, id)

		switch {
		case state.IsNotFoundError(err):
		case err != nil:
			return fmt.Errorf("read the status of machine %q: %w", id, err)
		default:
			blocker.learnConnection(status)
		}
	}

	return nil
}

// setsGoing returns the machine sets of a cluster that are being torn down, by ID, with the time since when.
func setsGoing(ctx context.Context, st state.State, cluster string) (map[string]time.Time, error) {
	sets, err := omni.ListOf(ctx, st, omnires.MachineSetType, cluster)
	if err != nil {
		return nil, err
	}

	going := map[string]time.Time{}

	for _, set := range sets {
		if set.Metadata().Phase() == resource.PhaseTearingDown {
			going[set.Metadata().ID()] = set.Metadata().Updated()
		}
	}

	return going, nil
}

// Leaving lists the machines that are leaving a cluster that stays: those of a MachineSet or MachineSetNode that is
// being torn down, and those that no set lists any more but that Omni has not freed yet. The order is that of
// DeleteProgress.Blockers. A missing cluster has none.
func Leaving(ctx context.Context, st state.State, cluster string) ([]Blocker, error) {
	going, err := setsGoing(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return nil, err
	}

	staying := map[string]bool{}

	for _, node := range nodes {
		set, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)
		_, goes := going[set]
		staying[node.Metadata().ID()] = !goes && node.Metadata().Phase() == resource.PhaseRunning
	}

	all, err := blockers(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(all, func(machine Blocker) bool { return staying[machine.Machine] }), nil
}
