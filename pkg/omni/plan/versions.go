package plan

import (
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// addClusterUpdate plans the update of a Cluster. It is one step, unless a version has to wait: for its own turn in a
// rollout, or for Omni, which upgrades either Talos or Kubernetes. Then it is up to three: the two versions, and the rest.
// Apply makes those that may be made together as one write.
func (b planBuilder) addClusterUpdate(plan *Plan, whole step, old, updated *omnires.Cluster) {
	versions := versionChanges(old, updated)
	keeps := slices.ContainsFunc(versions, func(version Change) bool { return b.upgrades.keep(version.Part) })

	if !b.options.Rollout && !keeps && len(versions) < 2 {
		b.addStep(plan, whole)

		return
	}

	was := old.TypedSpec().Value

	rest := updated.DeepCopy().(*omnires.Cluster) //nolint:forcetypeassert // a copy of itself
	rest.TypedSpec().Value.TalosVersion, rest.TypedSpec().Value.KubernetesVersion = was.GetTalosVersion(), was.GetKubernetesVersion()

	if !resource.Equal(old, rest) {
		part := whole
		part.new = rest
		b.addStep(plan, part)
	}

	for _, version := range versions {
		part := whole
		part.change.Part, part.change.From, part.change.To = version.Part, version.From, version.To
		one := old.DeepCopy().(*omnires.Cluster) //nolint:forcetypeassert // a copy of itself
		setVersion(one, version)
		part.new = one

		if b.upgrades.keep(version.Part) {
			part.change.Reason = waitReason(version)
			plan.WaitingForOmni = append(plan.WaitingForOmni, b.completed(part).change)
		} else {
			b.addStep(plan, part)
		}
	}
}

// versionChanges returns the versions that an update of a Cluster changes, as parts of a Change.
func versionChanges(old, updated *omnires.Cluster) []Change {
	was, wanted := old.TypedSpec().Value, updated.TypedSpec().Value

	return slices.DeleteFunc([]Change{
		{Part: v1alpha1.ChangeTalosVersion, From: was.GetTalosVersion(), To: wanted.GetTalosVersion()},
		{Part: v1alpha1.ChangeKubernetesVersion, From: was.GetKubernetesVersion(), To: wanted.GetKubernetesVersion()},
	}, func(version Change) bool { return version.From == version.To })
}

func setVersion(cluster *omnires.Cluster, version Change) {
	if version.Part == v1alpha1.ChangeTalosVersion {
		cluster.TypedSpec().Value.TalosVersion = version.To
	} else {
		cluster.TypedSpec().Value.KubernetesVersion = version.To
	}
}

// joinCluster merges the parts of the Cluster's update that are not held into one step. For the held parts, the step
// keeps Omni's values. One of two versions waits for the other one.
func joinCluster(steps []step, held []bool) ([]step, []bool) {
	var (
		joined []step
		waits  []bool
		first  = -1 // the step that the others join
	)

	later := laterVersion(steps, held)

	for i, s := range steps {
		if i == later {
			s.waits, s.change.Reason = true, waitReason(s.change)
		}

		if !s.isClusterPart() || held[i] || s.waits {
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
		setVersion(one, s.change)
		joined[first].new = one
		joined[first].joined = append(joined[first].joined, s.change)
	}

	return joined, waits
}

// laterVersion returns the index of the version that waits for the other one; -1 unless there are two that are not held.
func laterVersion(steps []step, held []bool) int {
	index := func(kind v1alpha1.ChangeKind) int {
		return slices.IndexFunc(steps, func(s step) bool { return s.isClusterPart() && s.change.Part == kind })
	}

	talos, kubernetes := index(v1alpha1.ChangeTalosVersion), index(v1alpha1.ChangeKubernetesVersion)

	switch {
	case talos < 0, kubernetes < 0, held[talos], held[kubernetes]:
		return -1
	case laterOf(steps[talos].change, steps[kubernetes].change) == v1alpha1.ChangeTalosVersion:
		return talos
	default:
		return kubernetes
	}
}

func (s step) isClusterPart() bool {
	return s.change.Type == omnires.ClusterType && s.change.Action == ActionUpdate
}

// changes returns all changes that a step makes.
func (s step) changes() []Change { return append([]Change{s.change}, s.joined...) }
