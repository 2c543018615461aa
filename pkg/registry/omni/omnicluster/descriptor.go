// Package omnicluster describes how the API server serves OmniClusters and their template subresource.
package omnicluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Descriptor describes OmniCluster. requireConfirmation is the meaning of an unset
// spec.deletePolicy.requireConfirmation.
func Descriptor(requireConfirmation bool) *kit.Descriptor[*v1alpha1.OmniCluster] {
	return &kit.Descriptor[*v1alpha1.OmniCluster]{
		Kind:      "OmniCluster",
		Plural:    "omniclusters",
		Singular:  "omnicluster",
		ShortName: "ocl",
		New:       func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniClusterList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniCluster]{
			Create:       validation.ValidateOmniCluster,
			Update:       validation.ValidateOmniClusterUpdate,
			StatusUpdate: validation.ValidateOmniClusterStatusUpdate,
		},
		Warnings:       validation.WarningsForOmniCluster,
		UpdateWarnings: validation.WarningsForOmniClusterUpdate,
		Record:         func(o, old *v1alpha1.OmniCluster, user string) { recordOverride(o, old, user, time.Now()) },
		Kept:           keepOverride,
		DeleteGuard:    func(_ context.Context, o *v1alpha1.OmniCluster) error { return confirmDeletion(o, requireConfirmation) },
		Deletion:       deletionOf,
		Selectable: &kit.SelectableField[*v1alpha1.OmniCluster]{
			Label: v1alpha1.ConnectionRefField,
			Value: func(o *v1alpha1.OmniCluster) string { return o.Spec.ConnectionRef.Name },
		},
		Suspended: func(o *v1alpha1.OmniCluster) bool { return o.Spec.Suspend },
		Columns:   columns(),
	}
}

func columns() []kit.Column[*v1alpha1.OmniCluster] {
	return []kit.Column[*v1alpha1.OmniCluster]{
		{
			Name:        "Kubernetes",
			Description: "Kubernetes version asked for, behind the one that Omni was told to run if that is another.",
			Cell: func(o *v1alpha1.OmniCluster) any {
				return version(o, func(omni *v1alpha1.OmniClusterRemoteStatus) string { return omni.KubernetesVersion }, o.Spec.Kubernetes.Version)
			},
		},
		{
			Name:        "Talos",
			Description: "Talos version asked for, behind the one that Omni was told to run if that is another.",
			Cell: func(o *v1alpha1.OmniCluster) any {
				return version(o, func(omni *v1alpha1.OmniClusterRemoteStatus) string { return omni.TalosVersion }, o.Spec.Talos.Version)
			},
		},
		{
			Name:        "Control Plane",
			Description: "Healthy and requested machines of the control plane.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return machines(o, isControlPlane) },
		},
		{
			Name:        "Workers",
			Description: "Healthy and requested machines of all worker sets.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return machines(o, isWorkerSet) },
		},
		{
			Name:        "Connection",
			Description: "OmniConnection that leads to the cluster's Omni.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return o.Spec.ConnectionRef.Name },
		},
		{
			Name:        "Plan",
			Description: "Changes that Omni has not seen yet: + creates, ~ updates, - destroys, ! how many of them take machines away, or objects out of the running cluster, and h how many wait in an OmniRolloutPolicy.",
			Wide:        true,
			Cell:        func(o *v1alpha1.OmniCluster) any { return plan(o.Status.Plan) },
		},
		{
			Name:        "Held",
			Description: "When changes that wait in an OmniRolloutPolicy may begin, as far as it is known; else what they wait for.",
			Wide:        true,
			Cell:        func(o *v1alpha1.OmniCluster) any { return held(o.Status.Rollout) },
		},
	}
}

func isControlPlane(set *v1alpha1.MachineSetStatus) bool {
	return set.Name == v1alpha1.ControlPlaneSetName
}

func isWorkerSet(set *v1alpha1.MachineSetStatus) bool { return !isControlPlane(set) }

// machines prints "healthy/requested" machines, over the sets that counts selects; nothing until Omni has reported a
// status.
func machines(o *v1alpha1.OmniCluster, counts func(*v1alpha1.MachineSetStatus) bool) string {
	if o.Status.Omni == nil {
		return kit.OrNone("")
	}

	var healthy, requested int32

	for i := range o.Status.Omni.MachineSets {
		if set := &o.Status.Omni.MachineSets[i]; counts(set) {
			healthy += set.Machines.Healthy
			requested += set.Machines.Requested
		}
	}

	return fmt.Sprintf("%d/%d", healthy, requested)
}

// version prints the version that is asked for, behind the one that Omni was told to run if that is another: an upgrade
// waits for its turn, or was refused.
func version(o *v1alpha1.OmniCluster, reported func(*v1alpha1.OmniClusterRemoteStatus) string, wanted string) string {
	if o.Status.Omni == nil {
		return wanted
	}

	if runs := reported(o.Status.Omni); runs != "" && runs != wanted {
		return runs + "->" + wanted
	}

	return wanted
}

// plan counts creates, updates and destroys, and how many of them remove machines. It prints nothing for what
// is kept only to remember approvals.
func plan(p *v1alpha1.OmniClusterPlan) string {
	if !p.IsPlan() {
		return kit.OrNone("")
	}

	text := fmt.Sprintf("+%d ~%d -%d", p.Creates, p.Updates, p.Destroys)
	if p.Destructive > 0 {
		text += fmt.Sprintf(" !%d", p.Destructive)
	}

	if p.Held > 0 {
		text += fmt.Sprintf(" h%d", p.Held)
	}

	return text
}

// held prints when changes that wait for their turn may begin, in UTC, or what they wait for.
func held(status *v1alpha1.OmniClusterRollout) string {
	switch {
	case status == nil || status.Reason == "":
		return kit.OrNone("")
	case status.NotBefore != nil:
		return words.TimeWithZone(status.NotBefore.UTC())
	default:
		return status.Reason
	}
}

// confirmDeletion refuses the deletion of a cluster that asks for confirmation until its annotation confirm-deletion
// has the cluster's name. Deleting a cluster destroys its machines' data, so neither the deletion of a namespace nor
// the garbage collector may delete it as a side effect.
func confirmDeletion(o *v1alpha1.OmniCluster, byDefault bool) error {
	required := byDefault
	if wanted := o.Spec.DeletePolicy.RequireConfirmation; wanted != nil {
		required = *wanted
	}

	if !required || v1alpha1.IsDeletionConfirmed(o) {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omniclusters"), o.Name, fmt.Errorf(
		"deletion needs confirmation (spec.deletePolicy.requireConfirmation): annotate it with %s=%s first; "+
			"if it is not to be deleted, end the operation of the tool that tries again (Argo CD: argocd app terminate-op)",
		v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// deletionOf is what a deletion does to the cluster.
func deletionOf(o *v1alpha1.OmniCluster) kit.Deletion {
	if o.Spec.DeletePolicy.Orphan || o.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve {
		return kit.Deletion{}
	}

	does := fmt.Sprintf("destroys cluster %q in Omni, if this object made or adopted it", o.EffectiveClusterName())
	if count := countMachines(o); count > 0 {
		does = fmt.Sprintf("destroys cluster %q in Omni and wipes %s", o.EffectiveClusterName(), words.Plural(count, "machine"))
	}

	return kit.Deletion{Does: does, Keep: "set spec.deletePolicy.orphan: true first to keep it"}
}

// countMachines counts the machines of the cluster that Omni has reported; 0 if it is not known, or if another object has the
// cluster.
func countMachines(o *v1alpha1.OmniCluster) int {
	if o.Status.Omni == nil {
		return 0
	}

	count := 0
	for i := range o.Status.Omni.MachineSets {
		count += int(o.Status.Omni.MachineSets[i].Machines.Total)
	}

	return count
}

// recordOverride writes into the status who lets changes begin out of turn. It does so in the same write that sets
// the annotation, so that no client can leave it out. Validation of the annotation comes later; a refused object is
// not stored.
func recordOverride(o, old *v1alpha1.OmniCluster, user string, now time.Time) {
	value := o.Annotations[v1alpha1.AnnotationRolloutOverride]
	if value == "" || value == old.Annotations[v1alpha1.AnnotationRolloutOverride] {
		return
	}

	hash, reason, _ := strings.Cut(value, " ")

	status := &v1alpha1.OmniClusterRollout{}
	if o.Status.Rollout != nil {
		status = o.Status.Rollout.DeepCopy()
	}

	status.Override = &v1alpha1.RolloutOverride{
		Hash: hash, Reason: strings.TrimSpace(reason), User: user, Time: words.StoredTime(now),
	}
	o.Status.Rollout = status
}

// keepOverride restores what recordOverride wrote: a write of the status cannot change it. It may say that the override
// was used up, if it means that very override: another one may have been recorded since the writer read the object.
func keepOverride(o, old *v1alpha1.OmniCluster) {
	var kept *v1alpha1.RolloutOverride
	if old.Status.Rollout != nil {
		kept = old.Status.Rollout.Override
	}

	if o.Status.Rollout == nil {
		if kept == nil {
			return
		}

		o.Status.Rollout = &v1alpha1.OmniClusterRollout{Governed: old.Status.Rollout.Governed}
	}

	o.Status.Rollout.Override = withUse(kept, o.Status.Rollout.Override)
}

// withUse returns a recorded override with the time of its use, if a writer of the status says that it was used.
func withUse(recorded, written *v1alpha1.RolloutOverride) *v1alpha1.RolloutOverride {
	if recorded == nil || written == nil || recorded.UsedTime != nil {
		return recorded
	}

	used := recorded.DeepCopy()
	used.UsedTime = written.UsedTime

	if !equality.Semantic.DeepEqual(used, written) {
		return recorded
	}

	return used
}
