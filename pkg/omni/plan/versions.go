package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	talosapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

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

// upgrades says which upgrades of a cluster Omni has not finished. Releases of Omni after 1.9.3 refuse a version of
// Talos or Kubernetes that changes together with the other one, or while the upgrade of the other one is on its way.
type upgrades struct{ talos, kubernetes bool }

// readUpgrades reads the upgrades of the cluster whose version one of the updates changes. If none does, it reads nothing:
// what a comparison reads decides when it is made again.
func readUpgrades(ctx context.Context, st state.State, updates []template.UpdateChange) (upgrades, error) {
	for _, update := range updates {
		old, wasCluster := update.Old.(*omnires.Cluster)
		updated, isCluster := update.New.(*omnires.Cluster)

		if wasCluster && isCluster && len(versionChanges(old, updated)) > 0 {
			return upgradesOf(ctx, st, old)
		}
	}

	return upgrades{}, nil
}

// upgradesOf decides as Omni does.
func upgradesOf(ctx context.Context, st state.State, cluster *omnires.Cluster) (upgrades, error) {
	id, wanted := cluster.Metadata().ID(), cluster.TypedSpec().Value

	talos, err := readStatus[*omnires.TalosUpgradeStatus](ctx, st, id)
	if err != nil {
		return upgrades{}, err
	}

	kubernetes, err := readStatus[*omnires.KubernetesUpgradeStatus](ctx, st, id)
	if err != nil {
		return upgrades{}, err
	}

	var found upgrades

	if talos != nil {
		spec := talos.TypedSpec().Value
		found.talos = spec.GetPhase() == specs.TalosUpgradeStatusSpec_Upgrading || spec.GetPhase() == specs.TalosUpgradeStatusSpec_Reverting ||
			spec.GetLastUpgradeVersion() != "" && spec.GetLastUpgradeVersion() != wanted.GetTalosVersion()
	}

	// Without a version, Kubernetes is being set up: that is no upgrade.
	if kubernetes != nil && kubernetes.TypedSpec().Value.GetLastUpgradeVersion() != "" {
		spec := kubernetes.TypedSpec().Value
		found.kubernetes = spec.GetPhase() == specs.KubernetesUpgradeStatusSpec_Upgrading || spec.GetPhase() == specs.KubernetesUpgradeStatusSpec_Reverting ||
			spec.GetLastUpgradeVersion() != wanted.GetKubernetesVersion()
	}

	return found, nil
}

// readStatus reads a resource by ID. It returns nil without an error if there is none.
func readStatus[T meta.ResourceWithRD](ctx context.Context, st state.State, id string) (T, error) {
	found, err := safe.StateGetByID[T](ctx, st, id)
	if err != nil && !state.IsNotFoundError(err) {
		return found, fmt.Errorf("read the upgrades of cluster %q: %w", id, err)
	}

	return found, nil
}

// keep reports whether the upgrade of the other version keeps a version of this kind waiting. It does not if this kind is
// being upgraded, too, as an Omni of release 1.9.3 lets others begin both: one of them may have to be changed for either
// to end, and Omni decides.
func (u upgrades) keep(kind v1alpha1.ChangeKind) bool {
	if kind == v1alpha1.ChangeTalosVersion {
		return u.kubernetes && !u.talos
	}

	return u.talos && !u.kubernetes
}

// waitReason says what a version waits for.
func waitReason(version Change) string {
	name, other := "Talos", "Kubernetes"
	if version.Part == v1alpha1.ChangeKubernetesVersion {
		name, other = other, name
	}

	return fmt.Sprintf("%s v%s waits until Omni has finished the %s upgrade", name, version.To, other)
}

// laterOf returns which of two versions that may both be written waits for the other one: that of Kubernetes, unless the
// new Talos does not run the old Kubernetes, and the old Talos runs the new one. A Talos that is not known here goes first.
func laterOf(talos, kubernetes Change) v1alpha1.ChangeKind {
	if runs(talos.To, kubernetes.To) && !runs(talos.To, kubernetes.From) && runs(talos.From, kubernetes.To) {
		return v1alpha1.ChangeTalosVersion
	}

	return v1alpha1.ChangeKubernetesVersion
}

// runs reports whether a version of Talos is known to run a version of Kubernetes.
func runs(talos, kubernetes string) bool {
	host, err := compatibility.ParseTalosVersion(&talosapi.VersionInfo{Tag: talos})
	if err != nil {
		return false
	}

	version, err := compatibility.ParseKubernetesVersion(kubernetes)

	return err == nil && version.SupportedWith(host) == nil
}
