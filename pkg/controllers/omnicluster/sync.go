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
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// sync applies as much of the plan as may be applied now.
func (r *reconciler) sync(ctx context.Context, s *scope) (loop.Outcome, error) {
	gate := r.openGate(s)

	// After the gate, which remembers approvals.
	if rival := r.rivals.look(s); rival != "" {
		s.follows = false
		// What was to be destroyed before waits for its whole settle time again.
		r.settled.forget(client.ObjectKeyFromObject(s.cluster))

		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", rival), nil
	}

	allowed := gate.decide()
	if !allowed.Apply {
		s.tried = true

		return r.finishSync(ctx, s, allowed, plan.Result{}), nil
	}

	if outcome, stop, err := r.prepareWrite(ctx, s, allowed); stop || err != nil {
		s.follows = false

		return outcome, err
	}

	known := r.refused.of(s, r.options.Now())

	result, err := s.lease.Apply(ctx, s.plan, plan.ApplyOptions{Leave: allowed.allows, Known: known.find})
	s.wrote, s.tried = result.Wrote(), true
	r.announceAdoption(s, result)
	s.left, s.requested = slices.Concat(result.Held, result.Skipped, result.Pending, s.plan.Waiting), result.Requested
	r.announce(s.cluster, result, s.hadAll())

	rival := r.rivals.wrote(s, result, r.options.Now())

	s.refused = known.next(result.Refused)
	r.refused.keep(s, s.refused)

	for _, refusal := range s.refused {
		s.left = append(s.left, refusal.Change)
	}

	var failed *plan.ChangeError

	refused := errors.As(err, &failed) && isRefusal(s.refused, failed)
	if failed != nil && !refused {
		s.left = append(s.left, failed.Change)
	}

	switch {
	case err != nil && !refused:
		return explainApply(ctx, &s.secrets, result, err)
	case rival != "":
		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", rival), nil
	}

	// What was done since does not wait for approval any more.
	gate.ask = howToApprove(s.cluster, s.hashToApprove())

	if refused {
		return r.explainRefusals(ctx, s, result, gate.decide().After), nil
	}

	return r.finishSync(ctx, s, gate.decide(), result), nil
}

// hadAll tells whether Omni had all that the documents say before this run: this
// generation was synced, and the template is the one of then.
func (s *scope) hadAll() bool {
	status := s.cluster.Status
	synced := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)

	return synced != nil && synced.Status == metav1.ConditionTrue && synced.ObservedGeneration == s.cluster.Generation &&
		status.TemplateHash == template.Hash(s.rendered)
}

// hashToApprove is the hash that the status and its messages show.
func (s *scope) hashToApprove() string { return hashToApprove(s.left, s.requested, needsApproval(s)) }

// openGate asks the pure decisions, and remembers what they have to remember.
func (r *reconciler) openGate(s *scope) gate {
	spec := s.cluster.Spec
	now := r.options.Now()
	sorted := sortDestructive(s.plan, recordOf(s), spec.ChangePolicy, s.adopting)
	keys := make([]string, 0, len(sorted.asked))

	// A suspension starts the settle time again when it ends.
	if !spec.Suspend {
		for _, change := range sorted.asked {
			keys = append(keys, change.Key())
		}
	}

	settling := r.settled.update(client.ObjectKeyFromObject(s.cluster), func(before settling) settling {
		return before.settle(s.cluster.UID, keys, now, r.options.SettleTime)
	})

	approved, remember := approve(spec.ApprovedPlan, s.plan, sorted.unasked, approvals(s.cluster.Status))
	s.approved = remember

	observes := spec.ChangePolicy == v1alpha1.ChangePolicyObserve
	s.follows = !spec.Suspend && !observes && !s.live.Locked

	if !approved && !observes {
		s.unasked = sorted.unasked
	}

	return gate{
		suspend: spec.Suspend, locked: s.live.Locked, policy: spec.ChangePolicy,
		changes: len(s.plan.Changes), waiting: len(s.plan.Waiting), planned: planText(s.plan), destructive: sorted,
		settled: settling.settled, settlesIn: settling.remaining(now, r.options.SettleTime),
		approved: approved, ask: howToApprove(s.cluster, s.hashToApprove()),
	}
}

// prepareWrite makes sure that what is written to Omni can be found again, and
// that a destructive change is still wanted.
func (r *reconciler) prepareWrite(ctx context.Context, s *scope, allowed leave) (outcome loop.Outcome, stop bool, err error) {
	// The status has to say where a cluster may be before there is one: a
	// deletion after a crash would not look for it otherwise.
	// And that a cluster was taken over has to be known before anything of it
	// is changed: what was there is not drift. What was approved outlasts a crash.
	status := &s.cluster.Status
	if status.Endpoint == "" || s.adopting && !status.Adopting || !isRemembered(*status, s.approved, allowed.Destroy) {
		status.Endpoint, status.Adopting = s.connection.Spec.Endpoint, status.Adopting || s.adopting

		return loop.Persist(v1alpha1.ReasonProgressing, "%s", planText(s.plan)+s.takeover()), true, nil
	}

	if s.takeover() != "" {
		if outcome, stop, err := r.checkTakeover(ctx, s); stop || err != nil {
			return outcome, true, err
		}
	}

	if len(allowed.Destroy) == 0 {
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
func (r *reconciler) announceAdoption(s *scope, result plan.Result) {
	text := s.takeover()
	if text == "" || !slices.ContainsFunc(result.Applied, func(change plan.Change) bool { return change.Type == plan.TypeCluster }) {
		return
	}

	reason, action := "Adopted", "Adopt"
	if s.movesHere() {
		reason, action = "TakenOver", "TakeOver"
	}

	r.events.Eventf(s.cluster, nil, corev1.EventTypeNormal, reason, action, "%s", strings.TrimPrefix(text, "; "))
}

// finishSync says what is left of the plan after what was allowed was applied.
func (r *reconciler) finishSync(ctx context.Context, s *scope, allowed leave, result plan.Result) loop.Outcome {
	switch {
	case allowed.After.Reason() != "":
		return allowed.After
	case len(result.Pending)+len(result.Skipped) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", r.describeLeaving(ctx, s, slices.Concat(result.Pending, result.Skipped)))
	case len(s.plan.Waiting) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "waiting for Omni: %s: %s", nameChanges(s.plan.Waiting), s.plan.Waiting[0].Reason)
	case len(result.Held) > 0:
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "%s held back", nameChanges(result.Held))
	}

	s.synced = true

	return loop.Continue(v1alpha1.ReasonUpToDate, "Omni has what the objects say")
}

// explainApply turns the error of an apply into what the user is told. What was
// applied before stays, and is named.
func explainApply(ctx context.Context, secrets *secrets, result plan.Result, err error) (loop.Outcome, error) {
	message := secrets.clean(ctx, omni.Message(err))
	if len(result.Applied) > 0 {
		message = fmt.Sprintf("%s; before that Omni took %s", message, nameChanges(result.Applied))
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
