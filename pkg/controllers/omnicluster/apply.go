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

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

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
	r.recordDestroyed(s.cluster, found.taken)

	secondWriter := r.noteWrites(s, found.taken)

	found.refusals = recent.next(result.Refused)
	r.processStates.of(s.cluster).refusals = keptRefusals{asked: askedFor(s), refusals: found.refusals}

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

// explainApply converts the error of an apply into the outcome for the user. It names the changes that were made before
// the error; they stay.
func explainApply(ctx context.Context, secrets *SecretTexts, done []plan.Change, err error) (loop.Outcome, error) {
	message := secrets.Clean(ctx, omni.Message(err))
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

// maxAnnounced is how many changes of one apply get an event each.
const maxAnnounced = 20

// announce sends one event for each change that Omni took, up to a limit, and one more event that counts the others.
// The run that makes a change announces it, so no change is announced twice. corrected is true if Omni had everything
// that the documents say before: then somebody else had changed what the run changed back.
func (r *reconciler) announce(cluster *v1alpha1.OmniCluster, taken []plan.Change, corrected bool) {
	for _, change := range taken[:min(maxAnnounced, len(taken))] {
		said := announcementOf(change)
		if corrected {
			said = said.corrects(change)
		}

		r.events.Eventf(cluster, said.related, corev1.EventTypeNormal, said.reason, said.action, "%s", said.note)
	}

	if rest := len(taken) - maxAnnounced; rest > 0 {
		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Applied", "Apply", "%s in Omni", words.Plural(rest, "more change"))
	}
}

// announceAdoption sends the event that an existing cluster got this object's mark.
func (r *reconciler) announceAdoption(cluster *v1alpha1.OmniCluster, decision consent.Decision) {
	claim := decision.Claim()

	text := claim.Takeover()
	if text == "" || !slices.ContainsFunc(decision.Done(), func(change plan.Change) bool { return change.Type == plan.TypeCluster }) {
		return
	}

	reason, action := "Adopted", "Adopt"
	if claim.FromPreviousHub() {
		reason, action = "TakenOver", "TakeOver"
	}

	r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, action, "%s", strings.TrimPrefix(text, "; "))
}

// announcement is the event of one change that Omni took.
type announcement struct {
	reason, action, note string
	// related is the resource in Omni, with the change of its size. The recorder merges events that differ in their
	// note only, and would show the first note for all of them.
	related *corev1.ObjectReference
}

// corrects returns the announcement of a change that reverts somebody else's.
func (a announcement) corrects(change plan.Change) announcement {
	a.action = "Correct"

	switch change.Action {
	case plan.ActionCreate:
		a.reason, a.note = "Corrected", a.note+"; it was removed in Omni, and is there again as the documents say"
	case plan.ActionUpdate:
		a.reason, a.note = "Corrected", a.note+"; it was changed in Omni, and is again as the documents say"
	case plan.ActionDestroy:
		a.note += "; it was made in Omni, and the documents do not have it"
	}

	return a
}

func announcementOf(change plan.Change) announcement {
	kind := omni.KindOf(change.Type)
	said := announcement{related: &corev1.ObjectReference{APIVersion: "omni.sidero.dev", Kind: kind, Name: change.ID}}

	switch change.Action {
	case plan.ActionCreate:
		said.reason, said.action, said.note = "Created", "Create", "created in Omni: "
	case plan.ActionUpdate:
		said.reason, said.action, said.note = "Updated", "Update", "updated in Omni: "
	case plan.ActionDestroy:
		said.reason, said.action, said.note = "Destroyed", "Destroy", "destruction requested in Omni: "
	}

	said.note += strings.TrimPrefix(change.String(), string(change.Action)+" ")

	if change.OldSize != change.NewSize {
		said.related.FieldPath = "size: " + change.OldSize + " -> " + change.NewSize
	}

	if change.Destructive {
		said.note += "; destructive: " + change.Reason
	}

	return said
}
