package omnicluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// report writes the results of a run into the status. Earlier results stay while Omni cannot be read.
func (r *reconciler) report(ctx context.Context, s *scope) {
	status := &s.cluster.Status
	status.ClusterName = s.name
	status.SecondWriter = r.processStates.of(s.cluster).reverts.found
	before := status.Omni

	if s.connection != nil {
		status.ConnectionRef = &v1alpha1.LocalObjectReference{Name: s.connection.Name}
	}

	if !s.cluster.DeletionTimestamp.IsZero() {
		r.forgetPhases(s.cluster)
	}

	if s.seen != nil {
		claim := r.claimNow(ctx, s)
		r.reportRemote(ctx, s, claim)
		reportAdoption(s, claim)
		r.noteOwner(s, reportHubs(s, claim))
	} else if !s.postponed && !s.behind {
		r.noteOwner(s, false)
	}

	if s.plan == nil {
		r.settleWithoutPlan(s)
	}

	r.reportPlan(ctx, s)

	if !s.postponed { // then the status is not written
		r.turnWithoutPlan(ctx, s)
	}

	r.noteWell(s, before)

	if s.synced != nil {
		r.reportSynced(s)
	}
}

// reportPlan writes the plan and what was decided of it into the status: what of it was approved, whose turn it is, what Omni has from
// this object and what it refuses.
func (r *reconciler) reportPlan(ctx context.Context, s *scope) {
	status := &s.cluster.Status

	// Taking an approval back waits neither for a plan nor for Omni.
	if s.cluster.Spec.ApprovedPlan == "" {
		consent.ForgetApprovals(status)
	}

	switch {
	case s.synced != nil:
		r.logPlan(ctx, s)

		// The first reads the approvals in the status, which the second writes.
		status.UsedApproval = r.usedApproval(s.cluster, s.synced.UsedApproval())
		status.Plan = s.synced.PlanStatus()
		storeTurn(s, s.synced.Rollout())
		r.nextRecord(ctx, s).Store(status)

		if s.synced.Tried() {
			status.Refusals = refusalStatus(ctx, s)
		}
	case s.seen != nil && !loop.HasFailed(status.Conditions): // of a run that ended with an error, nothing is known
		// There is no plan for a cluster that is not ours, or whose documents do not fit together.
		status.Plan, status.Refusals = consent.KeepApprovals(*status), nil
	}
}

// storeTurn writes the state of the cluster's turn in a rollout into the status. The run that finds the cluster Ready, because
// its last phase went well, stores that, too: the next run may be one without a plan, which takes the condition away. That of a
// suspended cluster stays as it was.
func storeTurn(s *scope, after *v1alpha1.OmniClusterRollout) {
	ready := !s.cluster.Spec.Suspend && apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionAvailable)
	if after != nil && ready {
		after.Governed = true
	}

	s.cluster.Status.Rollout = after
}

// reportSynced writes the result of applying the plan into the status.
func (r *reconciler) reportSynced(s *scope) {
	status := &s.cluster.Status

	if s.wrote() || s.synced.complete {
		status.Endpoint = s.connection.Spec.Endpoint
	}

	if s.wrote() {
		status.LastSyncTime = new(words.StoredTime(r.options.Now()))
	}

	// The hash is of a template of which Omni has all.
	if s.synced.complete {
		status.TemplateHash = s.rendered.hash
	}

	reportApplied(s)
}

// claimNow returns the claim after this run's writes: the cluster may exist, and carry our mark, only since then.
func (r *reconciler) claimNow(ctx context.Context, s *scope) consent.Claim {
	claim := claimOf(s)

	if s.wrote() && !claim.Owned() {
		if live, err := omni.Inspect(ctx, s.lease.Copy(), s.name); err == nil {
			claim.Live = live
		}
	}

	return claim
}

// reportRemote writes Omni's state of the cluster into the status, if the cluster is ours.
func (r *reconciler) reportRemote(ctx context.Context, s *scope, claim consent.Claim) {
	status, remote := &s.cluster.Status, s.remote

	// After the run's writes there may be a cluster that did not exist when the run began.
	if remote == nil || s.wrote() {
		if observed, err := observe.Observe(ctx, s.lease.Copy(), s.name); err == nil {
			remote, s.remote = &observed, &observed
		}
	}

	if !claim.Owned() || remote == nil || !remote.Exists || claim.LeadsElsewhere() {
		status.Omni = nil

		return
	}

	id := claim.Live.UUID

	if status.OmniClusterID != "" && id == "" && consent.Moved(status.Endpoint, s.connection.Spec.Endpoint) {
		return // not known to be the same cluster: what was recorded protects the one that was seen last
	}

	status.Endpoint = s.connection.Spec.Endpoint

	if id != "" && (s.plan != nil || status.OmniClusterID == "") {
		if id != status.OmniClusterID {
			status.ControlPlaneSet = nil // it was another cluster's
		}

		status.Starting = isStarting(*status, claim.Live)
		status.OmniClusterID = id
	}

	if id != "" && id == status.OmniClusterID {
		noteControlPlane(status, *remote)
	}

	if answered, _ := observe.KubernetesSeenReady(*remote); answered {
		status.Starting = false
	}

	status.Omni = remoteStatus(*remote, describedMachines(s.input))
}

// noteControlPlane writes the control plane that Omni has into the status. If it has none, the last one stays: a later run has to know
// that there was one.
func noteControlPlane(status *v1alpha1.OmniClusterStatus, remote observe.Status) {
	for _, set := range remote.MachineSets {
		if set.ControlPlane {
			status.ControlPlaneSet = &v1alpha1.ControlPlaneSet{Created: words.StoredTime(set.Created), Backup: set.Backup}
		}
	}
}

// reportAdoption writes into the status whether an existing cluster is being adopted.
func reportAdoption(s *scope, claim consent.Claim) {
	status := &s.cluster.Status

	switch {
	case claim.LeadsElsewhere(): // what is adopted is not seen from here
	case !claim.Live.Exists && claim.KnownID != "": // it may come back, with an Omni that was restored
	case !claim.Live.Exists, s.plan != nil && s.plan.Empty():
		status.Adopting = false
	case s.seen.adopting && claim.Owned():
		status.Adopting = true
	}
}

// reportHubs writes into the status which other hub the cluster belongs to, and that this hub has seen it. Both stay while Omni
// cannot be read, and where the cluster was last seen is not seen from here: what is in the workload cluster is that hub's all the same.
// It returns whether it is seen.
func reportHubs(s *scope, claim consent.Claim) bool {
	other := claim.OtherHub()
	if other == "" && claim.LeadsElsewhere() {
		return false
	}

	s.cluster.Status.HubID, s.cluster.Status.OtherHub = s.hubs.Own, other

	return true
}

// noteOwner notes for who works in the workload cluster whether this process sees in Omni whose the cluster is.
func (r *reconciler) noteOwner(s *scope, seen bool) {
	if seen {
		r.options.Owners.Note(s.cluster)
	} else {
		r.options.Owners.Lost(client.ObjectKeyFromObject(s.cluster))
	}
}

// measure updates the metrics of a cluster.
func (r *reconciler) measure(cluster *v1alpha1.OmniCluster) {
	name := client.ObjectKeyFromObject(cluster)
	r.options.Objects.SetInfo(metrics.Object{Kind: kindName, NamespacedName: name}, cluster.Status.Conditions, cluster.Name)

	if plan := cluster.Status.Plan; plan.IsPlan() {
		r.options.Objects.SetPlan(name, &metrics.PlanCounts{Creates: int(plan.Creates), Updates: int(plan.Updates), Destroys: int(plan.Destroys)})
	} else {
		r.options.Objects.SetPlan(name, nil)
	}
}

// transient returns the conditions that exist only while they are true.
func (s *scope) transient() []loop.TransientCondition {
	if s.synced == nil {
		return nil // what was found last stays
	}

	reason, message := s.synced.HeldCondition()

	return []loop.TransientCondition{{Condition: v1alpha1.ConditionHeld, On: reason != "", Reason: reason, Message: message}}
}

// announceStatus sends the events about what is new in the status, once it is stored.
func (r *reconciler) announceStatus(before, after *v1alpha1.OmniCluster) {
	r.announceMove(before, after)
	r.announceTurn(after, before.Status.Rollout, after.Status.Rollout)
}

// announceMove sends the event that the cluster is looked for at another endpoint from now on. Nothing tells an Omni that has moved from
// a copy of it, in which the cluster has the same mark and ID, so a person has to know.
func (r *reconciler) announceMove(before, after *v1alpha1.OmniCluster) {
	from, to := before.Status.Endpoint, after.Status.Endpoint
	if !consent.Moved(from, to) {
		return
	}

	recognised := "its mark and its ID"
	if before.Status.OmniClusterID == "" {
		recognised = "its mark"
	}

	connection := &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "OmniConnection", Namespace: after.Namespace, Name: after.Spec.ConnectionRef.Name,
		FieldPath: from + " -> " + to, // the recorder would take the way back for the same event
	}
	r.events.Eventf(after, connection, corev1.EventTypeWarning, "EndpointMoved", "Connect",
		"cluster %q is looked for at %s from now on, before at %s: it was recognised by %s, which a copy of that Omni has, too",
		after.Status.ClusterName, to, from, recognised)
}

// announceTurn sends the events about the cluster's turn, and counts what began out of turn.
func (r *reconciler) announceTurn(cluster *v1alpha1.OmniCluster, before, after *v1alpha1.OmniClusterRollout) {
	was, is := stateOf(before), stateOf(after)
	if after == nil {
		return
	}

	if failure := after.Failure; failure != nil && (before == nil || before.Failure == nil || !before.Failure.Time.Equal(&failure.Time)) {
		r.events.Eventf(cluster, nil, corev1.EventTypeWarning, "RolloutFailed", "Rollout", "%s", failure.Message)
	}

	if was == is && (before == nil || before.Hash == after.Hash) {
		return
	}

	switch is {
	case v1alpha1.RolloutHeld:
		if was != is {
			r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Held", "Rollout", "changes wait for their turn: %s", after.Reason)
		}
	case v1alpha1.RolloutAdmitted:
		reason, note := "Admitted", "changes may begin"
		if consent.IsOverridden(cluster, after.Override, after.Hash) {
			reason, note = "RolloutOverridden", "changes begin out of turn: "+overrideText(after)
			r.options.Overrides.CountOverride(types.NamespacedName{Namespace: cluster.Namespace, Name: after.Policy})
		}

		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, "Rollout", "%s", note)
	case v1alpha1.RolloutFailed:
	}
}

func overrideText(status *v1alpha1.OmniClusterRollout) string {
	if status.Override == nil {
		return "by the annotation " + v1alpha1.AnnotationRolloutOverride
	}

	return status.Override.User + ": " + status.Override.Reason
}
