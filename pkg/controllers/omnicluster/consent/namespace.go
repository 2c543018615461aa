package consent

import "omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"

// leavesAlone reports whether a change is not made because the namespace is being deleted: documents without a finalizer go
// before the OmniCluster, which may stay, and its machines would lose their settings. A destructive change can be approved,
// unless only half of what was approved would be made. What Omni has begun is finished.
func (d Decision) leavesAlone(change plan.Change) bool {
	return d.facts.NamespaceGoes && !change.TearingDown && (!change.Destructive || d.lacking != "")
}

// lacking returns, for messages, what a destructive change would lack in a namespace that is being deleted, because it is not
// made any more: what may take the place of what goes, so that etcd would lose a member, or a renamed set its machines; or
// the mark, which comes before everything else in a cluster. Empty if nothing is lacking. Which destruction belongs to
// which addition is nowhere said, so one addition holds them all.
func (f Facts) lacking() string {
	live := f.Claim.Live

	switch added, adds := f.Plan.Addition(); {
	case !f.NamespaceGoes:
		return ""
	case live.Exists && (!f.Claim.Owned() || live.Marks.Hub != f.Claim.Hubs.Own):
		return "the cluster in Omni does not carry this object's mark, which is not written any more"
	case adds:
		return "what would take the place of what goes is not made (" + added.String() + ")"
	default:
		return ""
	}
}

// leftAlone returns the changes that are not made because the namespace is being deleted.
func (d Decision) leftAlone() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldNamespace })
}
