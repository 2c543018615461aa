package consent

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// JudgeControlPlane decides whether a plan may make the control plane of a cluster that had one. Whoever deleted it in Omni deleted
// etcd, too, and Omni makes a new one: an empty one, although there may be backups, or the one of an old backup that the document still
// names. So that waits for a person, unless the document names a backup that the control plane was not made from: this is the request
// to restore it. A document that is older than the control plane asks for nothing new: somebody has restored another backup in Omni
// since. document is the OmniControlPlane. The outcome continues if nothing has to be asked, also while nothing is written.
func JudgeControlPlane(cluster *v1alpha1.OmniCluster, document *v1alpha1.OmniControlPlane, claim Claim, planned *plan.Plan) loop.Outcome {
	lost, spec := cluster.Status.ControlPlaneSet, cluster.Spec

	switch {
	case !planned.MakesControlPlane, lost == nil, claim.Live.UUID == "", claim.Live.UUID != claim.KnownID: // it is the first one
		return loop.Proceed()
	case planned.Backup != "" && planned.Backup != lost.Backup && !document.CreationTimestamp.Time.Before(lost.Created.Time):
		return loop.Proceed()
	case claim.Recreate == allowsControlPlane(lost):
		return loop.Proceed()
	case spec.Suspend, spec.ChangePolicy == v1alpha1.ChangePolicyObserve: // the plan shows what would be made
		return loop.Proceed()
	default:
		return loop.Stall(v1alpha1.ReasonControlPlaneGone, "%s", controlPlaneGone(cluster, claim.Name, planned.Backup))
	}
}

// allowsControlPlane returns the value of the annotation that allows this control plane to be made again. The next one has another
// time, so a value that stays in Git allows nothing a second time.
func allowsControlPlane(lost *v1alpha1.ControlPlaneSet) string {
	return v1alpha1.RecreateControlPlanePrefix + words.Time(lost.Created.Time)
}

// controlPlaneGone returns the message about a control plane that Omni has no more: what happened, and what to do. backup is what it
// would be made from.
func controlPlaneGone(cluster *v1alpha1.OmniCluster, name, backup string) string {
	lost := cluster.Status.ControlPlaneSet

	other, again := "", "with an empty etcd, without anything that the cluster's Kubernetes had"
	if backup != "" {
		other, again = " that names another one", fmt.Sprintf("from backup %q, without anything that is newer", backup)
	}

	return fmt.Sprintf("Omni no longer has the control plane of cluster %q (MachineSet %q, made at %s), and etcd went with it; nothing is changed. "+
		"To restore etcd from a backup, put an OmniControlPlane with spec.bootstrapSpec%s in the place of the present one. "+
		"To make the control plane again %s: kubectl annotate omnicluster %s -n %s --field-manager=%s --overwrite %s=%s",
		name, name+"-"+v1alpha1.ControlPlaneSetName, words.Time(lost.Created.Time), other,
		again, cluster.Name, cluster.Namespace, v1alpha1.FieldManagerByHand, v1alpha1.AnnotationRecreate, allowsControlPlane(lost))
}
