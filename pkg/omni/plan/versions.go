package plan

import (
	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// addClusterUpdate plans the update of a Cluster as up to three steps: the versions of Talos and Kubernetes, and the
// rest, so that each can wait for its own turn. Apply makes those that may be made as one write.
func (b planBuilder) addClusterUpdate(plan *Plan, whole step, old, updated *omnires.Cluster) {
	was, wanted := old.TypedSpec().Value, updated.TypedSpec().Value

	rest := updated.DeepCopy().(*omnires.Cluster) //nolint:forcetypeassert // a copy of itself
	rest.TypedSpec().Value.TalosVersion, rest.TypedSpec().Value.KubernetesVersion = was.GetTalosVersion(), was.GetKubernetesVersion()

	if !resource.Equal(old, rest) {
		part := whole
		part.new = rest
		b.addStep(plan, part)
	}

	for _, version := range []struct {
		kind     Kind
		from, to string
	}{
		{KindTalosVersion, was.GetTalosVersion(), wanted.GetTalosVersion()},
		{KindKubernetesVersion, was.GetKubernetesVersion(), wanted.GetKubernetesVersion()},
	} {
		if version.from == version.to {
			continue
		}

		part := whole
		part.change.Part, part.change.From, part.change.To = string(version.kind), version.from, version.to
		one := old.DeepCopy().(*omnires.Cluster) //nolint:forcetypeassert // a copy of itself
		setVersion(one, version.kind, version.to)
		part.new = one
		b.addStep(plan, part)
	}
}

func setVersion(cluster *omnires.Cluster, kind Kind, version string) {
	if kind == KindTalosVersion {
		cluster.TypedSpec().Value.TalosVersion = version
	} else {
		cluster.TypedSpec().Value.KubernetesVersion = version
	}
}

// joinCluster merges the parts of the Cluster's update that are not held into one step. For the held parts, the step
// keeps Omni's values.
func joinCluster(steps []step, held []bool) ([]step, []bool) {
	var (
		joined []step
		waits  []bool
		first  = -1 // the step that the others join
	)

	for i, s := range steps {
		if !s.isClusterPart() || held[i] {
			joined, waits = append(joined, s), append(waits, held[i])

			continue
		}

		if first < 0 {
			first = len(joined)
			joined, waits = append(joined, s), append(waits, false)

			continue
		}

		// The rest comes first, so only versions join. A plan is immutable: the step gets a copy.
		one := joined[first].new.DeepCopy().(*omnires.Cluster) //nolint:forcetypeassert // isClusterPart
		setVersion(one, Kind(s.change.Part), s.change.To)
		joined[first].new = one
		joined[first].joined = append(joined[first].joined, s.change)
	}

	return joined, waits
}

func (s step) isClusterPart() bool {
	return s.change.Type == omnires.ClusterType && s.change.Action == ActionUpdate
}

// changes returns all changes that a step makes.
func (s step) changes() []Change { return append([]Change{s.change}, s.joined...) }
