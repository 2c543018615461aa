package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

// makePlan decides whose cluster it is, and compares the template with Omni.
//
// The question whose it is comes twice: the local copy goes on while we work,
// and a plan that was made from a later state than the answer would take back a
// cluster that has just got another owner. What changes after the second answer
// fails in Omni, because updates carry the version they were planned from.
func (r *reconciler) makePlan(ctx context.Context, s *scope) (loop.Outcome, error) {
	if verdict := judgeClaim(claimOf(s)); !verdict.Continues() {
		return verdict, nil
	}

	plan, err := s.lease.Plan(ctx, s.name, s.rendered, omni.PlanOptions{EveryDestroyIsDestructive: s.adopting})
	if err != nil {
		return r.explainPlan(s, err)
	}

	if s.live, err = s.lease.Inspect(ctx, s.name, markKeys()); err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	verdict := judgeClaim(claimOf(s))
	if !verdict.Continues() {
		return verdict, nil
	}

	// The plan was made by the first answer.
	if isAdopting(claimOf(s), s.cluster.Status.Adopting) && !s.adopting {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q appeared in Omni meanwhile; the plan is made anew", s.name), nil
	}

	s.plan, s.left, s.claimed = plan, slices.Concat(plan.Changes, plan.Waiting), true

	if plan.Empty() {
		return loop.Continue(v1alpha1.ReasonUpToDate, "no changes"), nil
	}

	return loop.Continue(v1alpha1.ReasonChangesPlanned, "%s", planText(plan)+s.takeover()), nil
}

// takeover says whose cluster is about to be taken over; empty if none is.
func (s *scope) takeover() string {
	switch {
	case !s.live.Exists || owned(s.live, string(s.cluster.UID)):
		return ""
	case s.live.Marks.UID == "":
		return "; cluster " + strconv.Quote(s.name) + ", which has no owner, is taken over (spec.adopt)"
	default:
		return "; cluster " + strconv.Quote(s.name) + " is taken over (spec.adopt) from " + owner(s.live.Marks)
	}
}

func claimOf(s *scope) claim {
	return claim{
		name: s.name, uid: string(s.cluster.UID), knownID: s.cluster.Status.OmniClusterID,
		adopt: s.cluster.Spec.Adopt, recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate], live: s.live,
	}
}

func (r *reconciler) explainPlan(s *scope, err error) (loop.Outcome, error) {
	message := s.redactor.clean(omni.Message(err))

	switch {
	case errors.Is(err, omni.ErrTemplate):
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", message), nil
	case errors.Is(err, omni.ErrCollision):
		return loop.Stall(v1alpha1.ReasonCollision, "%s", message), nil
	case errors.Is(err, omni.ErrClusterTearingDown):
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "%s", message), nil
	case errors.Is(err, omni.ErrNotSynced), errors.Is(err, omni.ErrBehind):
		s.behind = errors.Is(err, omni.ErrBehind)

		return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}

// sync applies as much of the plan as may be applied now.
func (r *reconciler) sync(ctx context.Context, s *scope) (loop.Outcome, error) {
	gate := r.openGate(s)

	allowed := gate.decide()
	if !allowed.Apply {
		return r.finishSync(ctx, s, allowed, omni.Result{}), nil
	}

	if outcome, stop, err := r.prepareWrite(ctx, s, allowed); stop || err != nil {
		s.follows = false

		return outcome, err
	}

	result, err := s.lease.Apply(ctx, s.plan, omni.ApplyOptions{Leave: allowed.allows})
	s.wrote = result.Wrote()
	r.announceAdoption(s, result)
	s.left, s.requested = slices.Concat(result.Held, result.Skipped, result.Pending, s.plan.Waiting), result.Requested
	r.announce(s.cluster, result)

	var failed *omni.ChangeError
	if errors.As(err, &failed) {
		s.left = append(s.left, failed.Change)
	}

	if err != nil {
		return explainApply(&s.redactor, result, err)
	}

	// What was done since does not wait for approval any more.
	gate.ask = howToApprove(s.cluster, s.hashToApprove())

	return r.finishSync(ctx, s, gate.decide(), result), nil
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

	var remembered []v1alpha1.ApprovedChange
	if s.cluster.Status.Plan != nil {
		remembered = s.cluster.Status.Plan.Approved
	}

	approved, remember := approve(spec.ApprovedPlan, s.plan, sorted.unasked, remembered)
	s.approved = remember

	observes := spec.ChangePolicy == v1alpha1.ChangePolicyObserve
	s.follows = !spec.Suspend && !observes && !s.live.Locked

	if !approved && !observes {
		s.unasked = sorted.unasked
	}

	return gate{
		suspend: spec.Suspend, locked: s.live.Locked, policy: spec.ChangePolicy,
		changes: len(s.plan.Changes), waiting: len(s.plan.Waiting), destructive: sorted,
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
	// is changed: what was there is not drift.
	if s.cluster.Status.Endpoint == "" || s.adopting && !s.cluster.Status.Adopting {
		s.reserve = true

		return loop.Wait(time.Millisecond, v1alpha1.ReasonProgressing, "%s", planText(s.plan)+s.takeover()), true, nil
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
func (r *reconciler) announceAdoption(s *scope, result omni.Result) {
	text := s.takeover()
	if text == "" || !slices.ContainsFunc(result.Applied, func(change omni.Change) bool { return change.Type == omni.TypeCluster }) {
		return
	}

	r.events.Eventf(s.cluster, nil, corev1.EventTypeNormal, "Adopted", "Adopt", "%s", strings.TrimPrefix(text, "; "))
}

// finishSync says what is left of the plan after what was allowed was applied.
func (r *reconciler) finishSync(ctx context.Context, s *scope, allowed leave, result omni.Result) loop.Outcome {
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
func explainApply(redact *redactor, result omni.Result, err error) (loop.Outcome, error) {
	message := redact.clean(omni.Message(err))
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
		return loop.Wait(100*time.Millisecond, v1alpha1.ReasonConflict, "%s", message), nil
	case omni.ClassNotReady, omni.ClassUnauthenticated, omni.ClassKeyExpired, omni.ClassKeyInvalid:
		return loop.Wait(5*time.Second, v1alpha1.ReasonConnectionNotReady, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}
