package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// sync applies as much of the plan as may be applied now.
func (r *reconciler) sync(ctx context.Context, s *scope) (loop.Outcome, error) {
	s.decision = r.decide(s)

	switch {
	case s.decision.MayApply():
	case !s.decision.Tried(): // a second writer
		return s.decision.Outcome(), nil
	default:
		return r.finishSync(ctx, s), nil
	}

	if outcome, stop, err := r.prepareWrite(ctx, s); stop || err != nil {
		return outcome, err
	}

	known := r.refused.of(s, r.options.Now())

	result, err := s.lease.Apply(ctx, s.plan, plan.ApplyOptions{Leave: s.decision.MayDestroy, Known: known.find})
	s.wrote = result.Wrote()
	s.decision = s.decision.After(result, err)
	r.announceAdoption(s)
	r.announce(s.cluster, s.decision.Taken(), s.hadAll())

	rival := r.rivals.wrote(s, s.decision.Taken(), r.options.Now())

	s.refused = known.next(result.Refused)
	r.refused.keep(s, s.refused)

	switch refused := consent.IsRefusal(result, err); {
	case err != nil && !refused:
		return explainApply(ctx, &s.secrets, s.decision.Done(), err)
	case rival != "":
		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", rival), nil
	case refused:
		return r.explainRefusals(ctx, s), nil
	default:
		return r.finishSync(ctx, s), nil
	}
}

// decide decides how far the plan may be applied, and remembers since when what was
// asked for settles.
func (r *reconciler) decide(s *scope) consent.Decision {
	name := client.ObjectKeyFromObject(s.cluster)

	decision := consent.Decide(consent.Facts{
		Cluster: s.cluster, Claim: claimOf(s), Adopting: s.adopting, Plan: s.plan, Rival: r.rivals.look(s),
		Settling: r.settled.of(name), SettleTime: r.options.SettleTime, Now: r.options.Now(),
	})
	r.settled.keep(name, decision.Settling)

	return decision
}

// hadAll tells whether Omni had all that the documents say before this run: this
// generation was synced, and the template is the one of then.
func (s *scope) hadAll() bool {
	status := s.cluster.Status
	synced := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)

	return synced != nil && synced.Status == metav1.ConditionTrue && synced.ObservedGeneration == s.cluster.Generation &&
		status.TemplateHash == template.Hash(s.rendered)
}

// prepareWrite makes sure that what is written to Omni can be found again, and
// that a destructive change is still wanted.
func (r *reconciler) prepareWrite(ctx context.Context, s *scope) (outcome loop.Outcome, stop bool, err error) {
	if s.decision.Unstored() {
		status := &s.cluster.Status
		status.Endpoint, status.Adopting = s.connection.Spec.Endpoint, status.Adopting || s.adopting

		return loop.Persist(v1alpha1.ReasonProgressing, "%s", s.decision.Summary()), true, nil
	}

	if claimOf(s).Takeover() != "" {
		if outcome, stop, err := r.checkTakeover(ctx, s); stop || err != nil {
			return outcome, true, err
		}
	}

	if len(s.decision.Destroys()) == 0 {
		return loop.Outcome{}, false, nil
	}

	current, err := r.isCurrent(ctx, s.cluster)
	if err != nil {
		return loop.Outcome{}, true, err
	}

	if current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	if err != nil {
		return loop.Outcome{}, true, err
	}

	if !current {
		r.settled.forget(client.ObjectKeyFromObject(s.cluster))

		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object or its documents changed meanwhile; the plan is made anew"), true, nil
	}

	return loop.Outcome{}, false, nil
}

// checkTakeover looks past the local copy before the first write to a cluster of
// somebody else: it must be the one that was planned for.
func (r *reconciler) checkTakeover(ctx context.Context, s *scope) (outcome loop.Outcome, stop bool, err error) {
	now, err := s.lease.InspectLive(ctx, s.name, markKeys())
	if err != nil {
		return loop.Outcome{}, true, errors.New(omni.Message(err))
	}

	if sameCluster := now.Exists && now.UUID == s.live.UUID && now.Marks == s.live.Marks; !sameCluster || now.TearingDown || now.Locked {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q changed in Omni meanwhile; the plan is made anew", s.name), true, nil
	}

	return loop.Outcome{}, false, nil
}

// announceAdoption tells that the mark was put on somebody else's cluster.
func (r *reconciler) announceAdoption(s *scope) {
	claim := claimOf(s)

	text := claim.Takeover()
	if text == "" || !slices.ContainsFunc(s.decision.Done(), func(change plan.Change) bool { return change.Type == plan.TypeCluster }) {
		return
	}

	reason, action := "Adopted", "Adopt"
	if claim.FromPreviousHub() {
		reason, action = "TakenOver", "TakeOver"
	}

	r.events.Eventf(s.cluster, nil, corev1.EventTypeNormal, reason, action, "%s", strings.TrimPrefix(text, "; "))
}

// finishSync says what is left of the plan after what may be applied was applied.
func (r *reconciler) finishSync(ctx context.Context, s *scope) loop.Outcome {
	outcome, leaving, held := s.decision.Outcome(), s.decision.Leaving(), s.decision.HeldBack()

	switch {
	case outcome.Reason() != "":
		return outcome
	case len(leaving) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", r.describeLeaving(ctx, s, leaving))
	case len(s.plan.Waiting) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "waiting for Omni: %s: %s", consent.ChangeNames(s.plan.Waiting), s.plan.Waiting[0].Reason)
	case len(held) > 0:
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "%s held back", consent.ChangeNames(held))
	}

	s.synced = true

	return loop.Continue(v1alpha1.ReasonUpToDate, "Omni has what the objects say")
}

// explainApply turns the error of an apply into what the user is told. What was
// applied before stays, and is named.
func explainApply(ctx context.Context, secrets *secrets, done []plan.Change, err error) (loop.Outcome, error) {
	message := secrets.clean(ctx, omni.Message(err))
	if len(done) > 0 {
		message = fmt.Sprintf("%s; before that Omni took %s", message, consent.ChangeNames(done))
	}

	switch omni.Classify(err) {
	case omni.ClassRefused:
		if errors.Is(err, omni.ErrClusterLocked) {
			return loop.Stall(v1alpha1.ReasonRemoteLocked, "%s", message), nil
		}

		return loop.Stall(v1alpha1.ReasonRefused, "%s", message), nil
	case omni.ClassDenied:
		return loop.Stall(v1alpha1.ReasonPermissionDenied, "%s", message), nil
	case omni.ClassConflict, omni.ClassGone:
		return loop.Overtaken(v1alpha1.ReasonConflict, "%s", message), nil
	case omni.ClassNotReady, omni.ClassUnauthenticated, omni.ClassKeyExpired, omni.ClassKeyInvalid:
		return loop.Wait(5*time.Second, v1alpha1.ReasonConnectionNotReady, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}
