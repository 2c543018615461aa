package mirror

import (
	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func (t *table) add(added stored) {
	id := added.Metadata().ID()
	t.byID[id] = added

	cluster, labelled := added.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	if t.byCluster[cluster] == nil {
		t.byCluster[cluster] = map[resource.ID]resource.Resource{}
	}

	t.byCluster[cluster][id] = added.Resource
}

func (t *table) remove(gone stored) {
	id := gone.Metadata().ID()
	delete(t.byID, id)

	cluster, labelled := gone.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	delete(t.byCluster[cluster], id)

	if len(t.byCluster[cluster]) == 0 {
		delete(t.byCluster, cluster)
	}
}

// clusterOf returns the cluster that a change of the resource concerns, or "". The caller holds the lock.
func (s *store) clusterOf(t *table, of stored) string {
	if t.kind.clusterFrom == fromID {
		return of.Metadata().ID()
	}

	if cluster, labelled := of.Metadata().Labels().Get(omnires.LabelCluster); labelled {
		return cluster
	}

	if t.kind.clusterFrom != fromMachine {
		return ""
	}

	if machine, ok := of.Resource.(*omnires.MachineStatus); ok && machine.TypedSpec().Value.GetCluster() != "" {
		return machine.TypedSpec().Value.GetCluster()
	}

	return s.clusterOfMachine(of)
}

// clusterOfMachine returns the cluster whose machine has the ID of a resource, or "". Kernel arguments carry only that ID,
// and Omni writes the cluster to a machine that connects some time after it has connected. The caller holds the lock.
func (s *store) clusterOfMachine(of stored) string {
	for _, kind := range []resource.Type{omnires.MachineSetNodeType, omnires.MachineStatusType} {
		related := s.tables[kind]
		if related == nil || kind == of.Metadata().Type() {
			continue
		}

		if machine := related.byID[of.Metadata().ID()]; machine.Resource != nil {
			if cluster := s.clusterOf(related, machine); cluster != "" {
				return cluster
			}
		}
	}

	return ""
}

// sameRevision compares the fields that Omni changes with every write. A resource that was destroyed and created again
// starts at version 1, so the time of its creation counts, too.
func sameRevision(a, b resource.Resource) bool {
	return a.Metadata().Version().Equal(b.Metadata().Version()) &&
		a.Metadata().Created().Equal(b.Metadata().Created()) &&
		a.Metadata().Updated().Equal(b.Metadata().Updated()) &&
		a.Metadata().Phase() == b.Metadata().Phase()
}

// maxClusterName is how long the name of a cluster in Omni may be, in bytes.
const maxClusterName = 63

// distinct drops repeated names, and those that no cluster can have, and keeps the order. A label may be as long as a
// message, and names are kept until they are looked up.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	kept := names[:0]

	for _, name := range names {
		if name != "" && len(name) <= maxClusterName && !seen[name] {
			seen[name] = true
			kept = append(kept, name)
		}
	}

	return kept
}
