package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// sync makes the changes of the plan that may be made now.
func (r *reconciler) sync(ctx context.Context, s *scope) (loop.Outcome, error) {
	decision, err := r.decide(ctx, s)
	if err != nil {
		return loop.Outcome{}, err
	}

	s.synced = &synced{Decision: decision}

	if decision.HasChangesToTry() {
		outcome, err := r.prepareWrite(ctx, s, decision)
		if err == nil && outcome.Continues() {
			outcome, err = r.apply(ctx, s)
		}

		if err != nil || !outcome.Continues() {
			return outcome.Within(s.synced.requeueAfter()), err
		}
	}

	outcome := r.whatIsLeft(ctx, s)
	s.synced.complete = outcome.Continues() && len(s.synced.WaitingForTurn()) == 0

	return outcome.Within(s.synced.requeueAfter()), nil
}

// requeueAfter returns after which time the next run is due because of what the copy does not show; 0 if it shows all.
func (s *synced) requeueAfter() time.Duration {
	if s.unshown == nil {
		return 0
	}

	return time.Second
}

// whatIsLeft returns the outcome for the changes that are left after the apply. It continues if none is.
func (r *reconciler) whatIsLeft(ctx context.Context, s *scope) loop.Outcome {
	decision := s.synced.Decision
	outcome, leaving, waiting, unconsented := decision.Outcome(), decision.Leaving(), decision.WaitingForOmni(), decision.Unconsented()

	switch {
	case !outcome.Continues():
		return outcome
	case len(leaving) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", leavingText(leaving, r.leaving(ctx, s)))
	case len(waiting) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", waitingText(waiting, r.leaving(ctx, s)))
	case len(unconsented) > 0:
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "%s held back", consent.ChangeNames(unconsented))
	case len(decision.WaitingForTurn()) > 0:
		_, message := decision.HeldCondition()

		return loop.Note(v1alpha1.ReasonHeld, "%s", message)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "Omni has what the objects say")
	}
}

// leavingText returns what the destruction of a part of a cluster waits for.
func leavingText(waits []plan.Change, machines []observe.Blocker) string {
	return "waiting for Omni to destroy " + consent.ChangeNames(waits) + leavingMachines(machines)
}

// waitingText returns what changes wait for that cannot be made yet.
func waitingText(waits []plan.Change, machines []observe.Blocker) string {
	return fmt.Sprintf("waiting for Omni: %s: %s", consent.ChangeNames(waits), consent.Reasons(waits)) + leavingMachines(machines)
}

// leaving returns the machines that leave the cluster.
func (r *reconciler) leaving(ctx context.Context, s *scope) []observe.Blocker {
	machines, err := observe.Leaving(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return nil // the message says a little less
	}

	return machines
}

// prepareWrite makes sure that what the run writes to Omni can be found again after a crash, and that a destructive
// change is still wanted. It continues if the plan may be applied.
func (r *reconciler) prepareWrite(ctx context.Context, s *scope, decision consent.Decision) (loop.Outcome, error) {
	if decision.Unstored() {
		status := &s.cluster.Status
		status.Endpoint, status.Adopting = s.connection.Spec.Endpoint, status.Adopting || s.seen.adopting
		status.Refusals = decision.Refusals()

		return loop.Persist(v1alpha1.ReasonProgressing, "%s", decision.Summary()), nil
	}

	if claim := decision.Claim(); claim.Takeover() != "" {
		if same, err := r.isPlannedCluster(ctx, s, claim); err != nil {
			return loop.Outcome{}, err
		} else if !same {
			return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q changed in Omni meanwhile; the plan is made anew", s.name), nil
		}
	}

	if valid, err := r.mayStillBegin(ctx, s, decision); err != nil || !valid {
		return loop.Overtaken(v1alpha1.ReasonConflict, "the rollout policy or the object changed meanwhile; the plan is made anew"), err
	}

	if len(decision.Destroys()) == 0 {
		return loop.Proceed(), nil
	}

	return r.confirmDestroys(ctx, s)
}

// isPlannedCluster reads the cluster from Omni itself before the first write to somebody else's cluster, and reports
// whether it is the one that was planned for.
func (r *reconciler) isPlannedCluster(ctx context.Context, s *scope, claim consent.Claim) (bool, error) {
	now, err := s.lease.InspectLive(ctx, s.name)
	if err != nil {
		return false, errors.New(omni.Message(err))
	}

	return now.Exists && now.UUID == claim.Live.UUID && now.Marks == claim.Live.Marks && !now.TearingDown && !now.Locked, nil
}

// mayStillBegin asks the API server, without the cache, whether the changes of a decision may still begin: the cache may lack a
// new policy, or a new label of the cluster. A new cluster is not asked about: no policy holds its changes.
func (r *reconciler) mayStillBegin(ctx context.Context, s *scope, decision consent.Decision) (bool, error) {
	begins, withoutTurn := decision.Begins(), r.options.Rollouts && isGoverned(s) && decision.BeginsWithoutTurn()
	if !begins && !withoutTurn {
		return true, nil
	}

	now := &v1alpha1.OmniCluster{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.cluster), now); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	if now.UID != s.cluster.UID || now.Generation != s.cluster.Generation {
		return false, nil
	}

	found, err := findSelection(ctx, now, r.live)
	if err != nil {
		return false, err
	}

	if withoutTurn && found.Revision != s.gate.Revision {
		return false, nil
	}

	return !begins || decision.MayBegin(now, r.gateOf(found, now)), nil
}

// unconfirmedError ends an Apply before it destroys something that may be wanted by now: the writes before a destroy can
// take minutes. It has the answer of the API server.
type unconfirmedError struct {
	outcome loop.Outcome
	err     error
}

func (e *unconfirmedError) Error() string { return omni.ErrPlanOutdated.Error() }

func (e *unconfirmedError) Unwrap() error { return omni.ErrPlanOutdated }

// confirmBy makes a plan.ApplyOptions.Confirm of a question to the API server, whose outcome continues if the destroy may
// go ahead.
func (s *scope) confirmBy(ask func(context.Context, *scope) (loop.Outcome, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		if outcome, err := ask(ctx, s); err != nil || !outcome.Continues() {
			return &unconfirmedError{outcome: outcome, err: err}
		}

		return nil
	}
}

// confirmDestroys reads the object and its documents once more before something of a cluster is destroyed. It continues
// if they are those of the plan.
func (r *reconciler) confirmDestroys(ctx context.Context, s *scope) (loop.Outcome, error) {
	current, err := r.isCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	switch {
	case err != nil:
		return loop.Outcome{}, err
	case !current:
		r.processStates.of(s.cluster).settling = keptSettling{}

		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object or its documents changed meanwhile; the plan is made anew"), nil
	default:
		return loop.Proceed(), nil
	}
}

// confirmDeletion reads the object once more before a cluster is destroyed. It continues if it still asks for that.
func (r *reconciler) confirmDeletion(ctx context.Context, s *scope) (loop.Outcome, error) {
	current, err := r.isCurrent(ctx, s.cluster)

	switch {
	case err != nil:
		return loop.Outcome{}, err
	case !current:
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object changed meanwhile"), nil
	default:
		return loop.Proceed(), nil
	}
}

// documentsAreCurrent lists the cluster's documents from the API server: a document that came back, here or with another cluster, must
// not be destroyed because a watch has not delivered it yet.
func (r *reconciler) documentsAreCurrent(ctx context.Context, s *scope) (bool, error) {
	now, err := collect(ctx, r.live, s.cluster)
	if err != nil {
		return false, err
	}

	moved, err := movedSets(ctx, r.live, s)
	if err != nil {
		return false, err
	}

	return maps.EqualFunc(versions(s.input), versions(now), sameDocument) && maps.Equal(s.moved, moved), nil
}

// versions returns the documents that count, by UID.
func versions(input template.Input) map[types.UID]metav1.Object {
	found := map[types.UID]metav1.Object{}

	for document := range input.All() {
		if document.GetDeletionTimestamp().IsZero() {
			found[document.GetUID()] = document
		}
	}

	return found
}

// sameDocument reports whether two states of a document say the same. After a restore of the API's storage, generations
// repeat with other content.
func sameDocument(a, b metav1.Object) bool {
	return a.GetGeneration() == b.GetGeneration() && equality.Semantic.DeepEqual(specOf(a), specOf(b))
}

func specOf(document metav1.Object) any {
	switch document := document.(type) {
	case *v1alpha1.OmniControlPlane:
		return document.Spec
	case *v1alpha1.OmniWorkers:
		return document.Spec
	case *v1alpha1.OmniMachine:
		return document.Spec
	default:
		return nil
	}
}

// specIsCurrent reads the object from the API server: what the run records as wanted must be in the spec that the API
// server has.
func (r *reconciler) specIsCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now, err := r.readAgain(ctx, cluster)

	return now != nil, err
}

// isCurrent reads the object from the API server, because nothing may be destroyed on the evidence of a cache.
func (r *reconciler) isCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now, err := r.readAgain(ctx, cluster)

	return now != nil && consent.AllowSame(now.Status, cluster.Status), err
}

// readAgain returns the object as the API server has it; nil if it wants something else there, or is gone. Generations
// alone do not tell: they repeat after a restore of the API's storage.
func (r *reconciler) readAgain(ctx context.Context, cluster *v1alpha1.OmniCluster) (*v1alpha1.OmniCluster, error) {
	now := &v1alpha1.OmniCluster{}

	err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), now)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, fmt.Errorf("read the object again: %w", err)
	case now.UID != cluster.UID, now.Generation != cluster.Generation, now.DeletionTimestamp.IsZero() != cluster.DeletionTimestamp.IsZero(),
		!equality.Semantic.DeepEqual(now.Spec, cluster.Spec):
		return nil, nil //nolint:nilnil // it wants something else
	default:
		return now, nil
	}
}
