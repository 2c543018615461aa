package omnicluster

import (
	"context"
	"errors"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
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

	decision := consent.Decide(consent.Facts{
		Cluster: s.cluster, Claim: claimOf(s), Adopting: s.seen.adopting, NamespaceGoes: namespaceGoes, NamespaceUnknown: unknown,
		Plan: s.plan, SecondWriter: r.secondWriter(s),
		Gate: s.gate, Settling: r.settlingOf(s), SettleTime: r.options.SettleTime, Deleted: r.prunes.in(s.cluster.Namespace), Now: r.options.Now(),
	})
	r.keepSettling(s, decision.Settling)
	r.noteAdmitted(ctx, s, decision.Rollout())

	return decision, nil
}

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

// apply makes the changes that may be made, and announces them. It continues unless something new keeps a change from
// being made.
func (r *reconciler) apply(ctx context.Context, s *scope) (loop.Outcome, error) {
	found, recent := s.synced, r.recentRefusals(s)

	if found.Begins() {
		r.noteTried(s.cluster, found.Rollout())
	}

	result, err := s.lease.Apply(ctx, s.plan, plan.ApplyOptions{
		Consent: found.MayDestroy, Admit: found.Admits, Confirm: s.confirmBy(r.confirmDestroys), RecentRefusal: recent.find,
	})
	found.Decision, found.taken = found.After(result, err), result.Taken()
	r.announceAdoption(s.cluster, found.Decision)
	r.announce(s.cluster, found.taken, s.hadAll())

	secondWriter := r.noteWrites(s, found.taken)

	found.refusals = recent.next(result.Refused)
	r.keepRefusals(s, found.refusals)

	// What the copy says of the cluster may still be from before our changes.
	if len(found.changed()) > 0 {
		found.unshown = r.catchUp(ctx, s)
	}

	unconfirmed := new(unconfirmedError)

	switch onlyRefusals := consent.IsRefusal(result, err); {
	case errors.As(err, &unconfirmed):
		return unconfirmed.outcome, unconfirmed.err
	case err != nil && !onlyRefusals:
		return explainApply(ctx, s.rendered.secrets, found.Done(), err)
	case secondWriter != "":
		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", secondWriter), nil
	case onlyRefusals:
		return r.explainRefusals(ctx, s, recent), nil
	default:
		return loop.Proceed(), nil
	}
}

// changed returns the changes that this run made, began or ended.
func (s *synced) changed() []plan.Change { return slices.Concat(s.taken, s.Done()) }

// hadAll reports whether Omni had everything that the documents say before this run: this generation was synced, and
// the template has not changed since.
func (s *scope) hadAll() bool {
	status := s.cluster.Status
	synced := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)

	return synced != nil && synced.Status == metav1.ConditionTrue && synced.ObservedGeneration == s.cluster.Generation &&
		status.TemplateHash == s.rendered.hash
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

// whatIsLeft returns the outcome for the changes that are left after the apply. It continues if none is.
func (r *reconciler) whatIsLeft(ctx context.Context, s *scope) loop.Outcome {
	decision := s.synced.Decision
	outcome, leaving, waiting, unconsented := decision.Outcome(), decision.Leaving(), decision.WaitingForOmni(), decision.Unconsented()

	switch {
	case !outcome.Continues():
		return outcome
	case len(leaving) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", r.describeLeaving(ctx, s, leaving))
	case len(waiting) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", r.describeWaiting(ctx, s, waiting))
	case len(unconsented) > 0:
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "%s held back", consent.ChangeNames(unconsented))
	case len(decision.WaitingForTurn()) > 0:
		_, message := decision.HeldCondition()

		return loop.Note(v1alpha1.ReasonHeld, "%s", message)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "Omni has what the objects say")
	}
}
