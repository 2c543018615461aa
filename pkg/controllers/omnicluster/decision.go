package omnicluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
)

// decide decides which changes of the plan may be made now, and stores the settle times.
func (r *reconciler) decide(ctx context.Context, s *scope) (consent.Decision, error) {
	namespaceGoes, unknown, err := r.namespaceGoes(ctx, s)
	if err != nil {
		return consent.Decision{}, err
	}

	if s.gate.Holds() {
		if s.gate.Turn, err = r.turnNow(ctx, s); err != nil {
			return consent.Decision{}, err
		}
	}

	if s.moved, err = movedSets(ctx, r.client, s); err != nil {
		return consent.Decision{}, err
	}

	slips, before := findSlips(s), r.settlingOf(s)
	decision := consent.Decide(consent.Facts{
		Cluster: s.cluster, Claim: claimOf(s), Adopting: s.seen.adopting, NamespaceGoes: namespaceGoes, NamespaceUnknown: unknown,
		Moved: s.moved, Workers: workersOfSets(s), Plan: s.plan, Slips: textsOf(slips), SecondWriter: r.secondWriter(s),
		Gate: s.gate, Settling: before, SettleTime: r.options.SettleTime, Deleted: r.prunes.in(s.cluster.Namespace),
		Documents: documentsKey(s), Joining: r.processStates.of(s.cluster).joining, JoinSettleTime: r.options.JoinSettleTime,
		Now: r.options.Now(),
	})
	r.keepSettling(s, decision.Settling)
	r.warn(s.cluster, decision.Warning(before), slips)
	r.processStates.of(s.cluster).joining = decision.Joining
	r.noteAdmitted(ctx, s, decision.Rollout())

	return decision, nil
}

// documentsKey identifies the object and its documents, with what they take from Secrets and ConfigMaps.
func documentsKey(s *scope) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %s", generationsOf(s), s.rendered.hash)) // maps are printed in the order of their keys

	return string(sum[:])
}

// claimOf returns the claim with the facts that are known so far.
func claimOf(s *scope) consent.Claim {
	claim := consent.Claim{
		Name: s.name, UID: string(s.cluster.UID), KnownID: s.cluster.Status.OmniClusterID,
		Adopt: s.cluster.Spec.Adopt, Recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate],
		Hubs: s.hubs, LastSeen: s.cluster.Status.Endpoint,
	}

	if s.seen != nil {
		claim.Live, claim.Owner = s.seen.live, s.seen.owner
	}

	if s.connection != nil {
		claim.Connection, claim.Endpoint = s.connection.Name, s.connection.Spec.Endpoint
	}

	return claim
}

// turnNow returns the state of the cluster's turn with what Omni says now: the status may be from before a write, and a
// later one may have been lost.
func (r *reconciler) turnNow(ctx context.Context, s *scope) (consent.Turn, error) {
	turn, status := s.gate.Turn, s.cluster.Status.Rollout
	if stateOf(status) != v1alpha1.RolloutAdmitted && (status == nil || status.Failure == nil) {
		return turn, nil // nothing is at work, and nothing failed
	}

	observed, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return turn, errors.New(omni.Message(err))
	}

	runs, _, _ := observe.Running(observed)
	turn.Healthy = turn.Healthy && runs
	// The run that sees the cluster run stores since when, whatever else keeps it from being Ready.
	turn.Recovered = runs && (status == nil || status.WellSince == nil) && !apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionAvailable)

	// A failure from before the turn is that of the changes before. The status of Available may be older than both.
	if status.AdmittedSince != nil {
		if message := observe.GivenUp(observed, r.upgradesBefore(s.cluster)); message != "" {
			turn.Failed = v1alpha1.ReasonUpgradeFailed + ": " + message
		}
	}

	return turn, nil
}

// namespaceGoes reports whether the namespace is being deleted, if the plan has changes: its documents go in any order then,
// and ask for nothing. The namespace controller deletes them after the Namespace says so, which is why a plan that was
// made of what is left of them finds it out. unknown says for messages why that is not known.
func (r *reconciler) namespaceGoes(ctx context.Context, s *scope) (goes bool, unknown string, err error) {
	if len(s.plan.Changes) == 0 {
		return false, "", nil
	}

	name, found := s.cluster.Namespace, &corev1.Namespace{}

	switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, found); {
	case apierrors.IsForbidden(err):
		return false, fmt.Sprintf("whether its namespace is being deleted is not known, because omni-controller may not get Namespace %q", name), nil
	case client.IgnoreNotFound(err) != nil:
		return false, "", fmt.Errorf("read Namespace %q: %w", name, err)
	default:
		return err != nil || !found.DeletionTimestamp.IsZero(), "", nil
	}
}

// keptSettling is what is kept of the settle times of a cluster from one run to the next.
type keptSettling struct {
	consent.Settling

	documents  map[types.UID]int64 // their generations, when the last plan was made
	turnedAway bool                // a run since then got no slot
}

// settlingOf returns the settle times that the last plan left. They begin anew if documents changed while runs got no
// slot: such a run does not see that a document came back.
func (r *reconciler) settlingOf(s *scope) consent.Settling {
	kept := r.processStates.of(s.cluster).settling
	if kept.turnedAway && !maps.Equal(kept.documents, generationsOf(s)) {
		return consent.Settling{}
	}

	return kept.Settling
}

// keepSettling stores the settle times of a plan.
func (r *reconciler) keepSettling(s *scope, next consent.Settling) {
	kept := keptSettling{Settling: next}
	if next.Has() {
		kept.documents = generationsOf(s)
	}

	r.processStates.of(s.cluster).settling = kept
}

// settleWithoutPlan ends the settle times in a run without a plan: a resource that was to be destroyed before a gap may
// have come back during it. Waiting for our own writes to be seen is no gap, nor is waiting for a slot: with more
// clusters than slots, the settle time would never end.
func (r *reconciler) settleWithoutPlan(s *scope) {
	kept := &r.processStates.of(s.cluster).settling

	switch {
	case s.behind:
	case s.turnedAway && kept.Has():
		kept.turnedAway = true
	default:
		*kept = keptSettling{}
	}
}

// admitted is what Omni had written of upgrades when this process admitted a turn: nothing of the turn was written by then.
type admitted struct {
	turnID
	upgrades observe.UpgradeTimes
}

// noteAdmitted remembers what Omni has written of upgrades if a decision admits a turn that the status does not have yet.
func (r *reconciler) noteAdmitted(ctx context.Context, s *scope, turn *v1alpha1.OmniClusterRollout) {
	id, known := turnOf(turn)
	if stateOf(turn) != v1alpha1.RolloutAdmitted || !known {
		return
	}

	now := admitted{turnID: id}
	if before := s.cluster.Status.Rollout; stateOf(before) == v1alpha1.RolloutAdmitted && now.isOf(before) {
		return // it goes on
	}

	observed, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return // the time of the admission has to do
	}

	now.upgrades = observe.TimesOfUpgrades(observed)
	r.processStates.of(s.cluster).admitted = now
}

// upgradesBefore returns when Omni wrote of upgrades last before the turn of the status, by its clock. Of a turn that an earlier
// process admitted it returns when that was, by our clock: that is right as far as the clocks agree.
func (r *reconciler) upgradesBefore(cluster *v1alpha1.OmniCluster) observe.UpgradeTimes {
	turn := cluster.Status.Rollout
	if noted := r.processStates.of(cluster).admitted; noted.isOf(turn) {
		return noted.upgrades
	}

	return observe.UpgradeTimes{Kubernetes: turn.AdmittedSince.Time, Talos: turn.AdmittedSince.Time}
}

// tried is the last time when this process tried to make the changes of a turn.
type tried struct {
	turnID
	at time.Time
}

// noteTried remembers that the changes of a cluster's turn are about to be made. It counts whatever comes of the call:
// Omni may take the changes although the call fails, and the status of this run may be lost.
func (r *reconciler) noteTried(cluster *v1alpha1.OmniCluster, turn *v1alpha1.OmniClusterRollout) {
	if id, known := turnOf(turn); known { // else somebody wrote the status by hand
		r.processStates.of(cluster).tried = tried{turnID: id, at: r.options.Now()}
	}
}

// triedAt returns when this process last tried to make the changes of the turn that the status has; zero if it has not.
func (r *reconciler) triedAt(cluster *v1alpha1.OmniCluster) time.Time {
	last := r.processStates.of(cluster).tried
	if !last.isOf(cluster.Status.Rollout) {
		return time.Time{}
	}

	return last.at
}

// nextRecord returns the record after a run. Besides by what the run created, the record grows only by what the API server, read
// without any cache, still has in the object and its documents. After a restore of the API's storage, the caches start again at different
// times, and a document that is gone must not make the destruction of its set look wanted. Whatever made the lists
// differ triggers the object again.
func (r *reconciler) nextRecord(ctx context.Context, s *scope) consent.Record {
	follows := s.synced.Follows()

	workers := workersOfSets(s)

	next := s.synced.NextRecord(follows).WithWorkers(workers)
	if !follows || !s.synced.Grows(next) {
		return next
	}

	current, err := r.specIsCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	if err != nil || !current {
		return s.synced.NextRecord(false).WithWorkers(workers)
	}

	return next
}

// workersOfSets returns the names of the OmniWorkers by the ID of the machine set that each asks for.
func workersOfSets(s *scope) map[string]string {
	names := map[string]string{}

	for _, part := range partsOf(s) {
		if part.kind == "OmniWorkers" {
			names[part.set] = part.document.GetName()
		}
	}

	return names
}

// movedSets returns the recorded machine sets that no document of the cluster asks for any more, and whose OmniWorkers exists and
// names another OmniCluster: its name by the set's ID. The API server refuses such an edit of an object that a cluster counts. Whoever forces it
// (Flux, kubectl) deletes the object and makes it again, and an edit may come before the status says who counts it.
func movedSets(ctx context.Context, reader client.Reader, s *scope) (map[string]string, error) {
	moved, asked := map[string]string{}, workersOfSets(s)

	for _, set := range s.cluster.Status.AppliedMachineSets {
		if set.OmniWorkers == "" || asked[set.ID] != "" {
			continue
		}

		workers := &v1alpha1.OmniWorkers{}

		err := reader.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: set.OmniWorkers}, workers)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read OmniWorkers %q: %w", set.OmniWorkers, err)
		}

		if cluster := workers.Spec.ClusterRef.Name; err == nil && workers.DeletionTimestamp.IsZero() && cluster != s.cluster.Name {
			moved[set.ID] = cluster
		}
	}

	return moved, nil
}

// prunes remembers when an object of the group was deleted last, by namespace, for a settle time at least. The zero
// value is ready to use.
type prunes struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// watchedForDeletions are the kinds of the documents that a prune takes one after the other.
func watchedForDeletions() []client.Object {
	return []client.Object{
		&v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{}, &v1alpha1.OmniMachine{},
		&v1alpha1.OmniKubeconfigExport{}, &v1alpha1.OmniSecretSync{}, &v1alpha1.OmniHelmRelease{},
	}
}

// in returns when an object was deleted last in a namespace; zero if that is not known any more.
func (p *prunes) in(namespace string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.last[namespace]
}

// note notes a deletion, and drops those that hold nothing back any more: their namespaces may be gone.
func (p *prunes) note(object client.Object, now time.Time, settleTime time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.last == nil {
		p.last = map[string]time.Time{}
	}

	maps.DeleteFunc(p.last, func(_ string, last time.Time) bool { return now.Sub(last) >= settleTime })

	p.last[object.GetNamespace()] = now
}

// handler notes deletions, and enqueues nothing. An object with a finalizer counts when its deletion begins.
func (p *prunes) handler(now func() time.Time, settleTime time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero() {
				p.note(e.ObjectNew, now(), settleTime)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.Object.GetDeletionTimestamp().IsZero() {
				p.note(e.Object, now(), settleTime)
			}
		},
	}
}

// usedApproval returns what status.usedApproval becomes. Only the run that begins an approved change knows that its
// approval is used, if the change is over at once. If somebody changes the object meanwhile, the status of that run is
// not stored: the next run stores it.
func (r *reconciler) usedApproval(cluster *v1alpha1.OmniCluster, decided string) string {
	state, stored := r.processStates.of(cluster), cluster.Status.UsedApproval

	switch {
	case decided != stored:
		state.used = &decided

		return decided
	case state.used != nil && *state.used != stored:
		return *state.used
	default:
		state.used = nil

		return stored
	}
}
