package omnicluster

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

const (
	// planVerbosity is the verbosity at which plans are logged in full.
	planVerbosity = 2
)

// report writes what a run found into the status. What was found last stays
// while Omni cannot be asked.
func (r *reconciler) report(ctx context.Context, s *scope) {
	status := &s.cluster.Status
	status.ClusterName = s.name

	if s.connection != nil {
		status.ConnectionRef = &v1alpha1.LocalObjectReference{Name: s.connection.Name}
	}

	if !s.cluster.DeletionTimestamp.IsZero() {
		r.forgetPhases(s.cluster)
	}

	if s.looked {
		r.reportRemote(ctx, s)
		reportAdoption(s)
	}

	// A settle time counts only while the plan is watched: what was to be
	// destroyed before a gap may have come back in it.
	if s.plan == nil && !s.behind {
		r.settled.forget(client.ObjectKeyFromObject(s.cluster))
	}

	// Whoever takes an approval back does not wait for a plan, or for Omni.
	if s.cluster.Spec.ApprovedPlan == "" {
		consent.ForgetApprovals(status)
	}

	switch {
	case s.plan != nil:
		logPlan(ctx, s)

		status.Plan = s.decision.PlanStatus()
		r.nextRecord(ctx, s).Store(status)

		if s.decision.Tried() {
			status.Refusals = refusalStatus(ctx, s)
		}
	case s.looked:
		// There is no plan for a cluster that is not ours, or whose documents do not fit together.
		status.Plan, status.Refusals = consent.KeepApprovals(*status), nil
	}

	if s.wrote || s.synced {
		status.Endpoint = s.connection.Spec.Endpoint
	}

	if s.wrote {
		// The API keeps whole seconds.
		status.LastSyncTime = &metav1.Time{Time: r.options.Now().UTC().Truncate(time.Second)}
	}

	switch {
	case s.synced:
		reportApplied(status, s.documents, template.Hash(s.rendered))
	case len(s.refused) > 0:
		reportPartly(s)
	}
}

// reportRemote writes what Omni says of the cluster, if it is ours.
func (r *reconciler) reportRemote(ctx context.Context, s *scope) {
	status := &s.cluster.Status

	// After writes the cluster may be there that was not there when the run began.
	if s.remote == nil || s.wrote {
		if observed, err := observe.Observe(ctx, s.lease.Copy(), s.name); err == nil {
			s.remote = &observed
		}
	}

	if s.wrote && !s.owns(s.live) {
		if live, err := omni.Inspect(ctx, s.lease.Copy(), s.name, markKeys()); err == nil {
			s.live = live
		}
	}

	if !s.owns(s.live) || s.remote == nil || !s.remote.Exists || claimOf(s).LeadsElsewhere() {
		status.Omni = nil

		return
	}

	if status.OmniClusterID != "" && s.live.UUID == "" && consent.Moved(status.Endpoint, s.connection.Spec.Endpoint) {
		return // not known to be the same cluster: what was recorded protects the one that was seen last
	}

	status.Endpoint = s.connection.Spec.Endpoint

	if s.live.UUID != "" && (s.plan != nil || status.OmniClusterID == "") {
		status.Starting = isStarting(s)
		status.OmniClusterID = s.live.UUID
	}

	if answered, _ := observe.Answered(*s.remote); answered {
		status.Starting = false
	}

	status.Omni = remoteStatus(*s.remote, describedMachines(s.input))
}

// reportApplied notes the documents whose content Omni has now.
func reportApplied(status *v1alpha1.OmniClusterStatus, documents *template.Documents, hash string) {
	status.TemplateHash = hash
	status.ControlPlaneRef = new(applied(documents.ControlPlane))
	status.WorkersRefs, status.MachineRefs = nil, nil

	for i := range documents.Workers {
		status.WorkersRefs = append(status.WorkersRefs, applied(&documents.Workers[i]))
	}

	for i := range documents.Machines {
		status.MachineRefs = append(status.MachineRefs, applied(&documents.Machines[i]))
	}
}

// reportPartly notes the documents of which nothing is left to do, while Omni
// refuses a part of others. Those keep what Omni had of them before.
func reportPartly(s *scope) {
	status := &s.cluster.Status
	before := slices.Concat(status.WorkersRefs, status.MachineRefs)

	if status.ControlPlaneRef != nil {
		before = append(before, *status.ControlPlaneRef)
	}

	status.ControlPlaneRef, status.WorkersRefs, status.MachineRefs = nil, nil, nil

	left := s.decision.Left()

	for _, part := range partsOf(s) {
		ref, had := stateBefore(before, part.document)
		if !slices.ContainsFunc(left, part.has) {
			ref, had = applied(part.document), true
		}

		switch {
		case !had:
		case part.kind == "OmniControlPlane":
			status.ControlPlaneRef = &ref
		case part.kind == "OmniWorkers":
			status.WorkersRefs = append(status.WorkersRefs, ref)
		default:
			status.MachineRefs = append(status.MachineRefs, ref)
		}
	}
}

func stateBefore(refs []v1alpha1.AppliedReference, document client.Object) (v1alpha1.AppliedReference, bool) {
	for _, ref := range refs {
		if ref.UID == string(document.GetUID()) {
			return ref, true
		}
	}

	return v1alpha1.AppliedReference{}, false
}

func applied(object client.Object) v1alpha1.AppliedReference {
	return v1alpha1.AppliedReference{Name: object.GetName(), UID: string(object.GetUID()), Generation: object.GetGeneration()}
}

// describedMachines are the machines that an OmniMachine of the cluster describes.
func describedMachines(input template.Input) map[string]bool {
	described := map[string]bool{}
	for i := range input.Machines {
		described[input.Machines[i].EffectiveMachineID()] = true
	}

	return described
}

// logPlan logs a plan in full, once for each time that it is another than the
// one that the status shows, and once when it is applied at once.
func logPlan(ctx context.Context, s *scope) {
	logger := log.FromContext(ctx).V(planVerbosity)
	if !logger.Enabled() || s.plan.Empty() {
		return
	}

	shown := ""
	if s.cluster.Status.Plan != nil {
		shown = s.cluster.Status.Plan.Diff
	}

	if full := s.plan.Diff(slices.Concat(s.plan.Changes, s.plan.Waiting)); s.wrote || plan.BoundedDiff(full) != shown {
		logger.Info("plan", "changes", consent.Summary(s.plan), "diff", full)
	}
}

// nextRecord is the record after a run. It grows only by what the API still has
// in the object and its documents when it is asked past every cache: after a restore of the API's
// storage the caches start again at different times, and a document that is gone
// must not be what makes the destruction of its set look asked for. Whatever
// made the list differ wakes the object again.
func (r *reconciler) nextRecord(ctx context.Context, s *scope) consent.Record {
	follows := s.decision.Follows()

	next := s.decision.NextRecord(follows)
	if !follows || !s.decision.Grows(next) {
		return next
	}

	current, err := r.specIsCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	if err != nil || !current {
		return s.decision.NextRecord(false)
	}

	return next
}

// reportAdoption writes into the status whether an existing cluster is being
// taken over.
func reportAdoption(s *scope) {
	status := &s.cluster.Status

	switch {
	case claimOf(s).LeadsElsewhere(): // what is adopted is not seen from here
	case !s.live.Exists, s.plan != nil && s.plan.Empty():
		status.Adopting = false
	case s.adopting && s.owns(s.live):
		status.Adopting = true
	}
}

// measure updates the metrics of a cluster.
func (r *reconciler) measure(cluster *v1alpha1.OmniCluster) {
	name := client.ObjectKeyFromObject(cluster)
	r.options.Objects.SetInfo(metrics.Object{Kind: kindName, NamespacedName: name}, cluster.Status.Conditions, cluster.Name)

	if plan := cluster.Status.Plan; consent.IsPlan(plan) {
		r.options.Objects.SetPlan(name, &metrics.PlanCounts{Creates: int(plan.Creates), Updates: int(plan.Updates), Destroys: int(plan.Destroys)})
	} else {
		r.options.Objects.SetPlan(name, nil)
	}
}
