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
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
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
	// related is the resource in Omni, with the change of its size, and, for a correction, with what was changed back. The recorder merges events that differ in their
	// note only, and would show the first note for all of them.
	related *corev1.ObjectReference
}

// maxFieldPath is how long the names of changed fields in an event may be, in bytes: others choose the keys of labels.
const maxFieldPath = 256

// corrects returns the announcement of a change that reverts somebody else's.
func (a announcement) corrects(change plan.Change) announcement {
	a.action = "Correct"

	switch change.Action {
	case plan.ActionCreate:
		a.reason, a.note = "Corrected", a.note+"; it was removed in Omni, and is there again as the documents say"
	case plan.ActionUpdate:
		a.reason, a.note = "Corrected", a.note+"; it was changed in Omni, and is again as the documents say"
		if change.Fields != "" {
			a.note += ": " + change.Fields
			a.related.FieldPath = redact.Bounded(strings.TrimPrefix(a.related.FieldPath+"; "+change.Fields, "; "), maxFieldPath)
		}
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

// slip is why the destruction of machines looks like a slip, and the document that has it.
type slip struct {
	document *v1alpha1.OmniWorkers
	text     string
}

// findSlips returns, by machine set, what in the documents of a plan that destroys machines looks like a slip: a list without any
// machine. The plan is made as they say all the same: this is for messages.
func findSlips(s *scope) map[string]slip {
	found := map[string]slip{}

	for _, change := range s.plan.Destructive() {
		for i := range s.input.Workers {
			o := &s.input.Workers[i]
			if listsNone(o) && change.Set == s.name+"-"+o.EffectiveWorkerSetName() {
				found[change.Set] = slip{o, fmt.Sprintf("OmniWorkers %q lists no machine any more", o.Name)}
			}
		}
	}

	return found
}

// listsNone reports whether a worker set is to have no machine: its list is empty or missing, and it has no class.
func listsNone(o *v1alpha1.OmniWorkers) bool {
	return o.DeletionTimestamp.IsZero() && o.Spec.MachineClass == nil && len(o.Spec.Machines) == 0
}

func textsOf(slips map[string]slip) map[string]string {
	texts := make(map[string]string, len(slips))
	for set, found := range slips {
		texts[set] = found.text
	}

	return texts
}

// warn sends an event that destroying changes begin to settle, to the cluster and to the documents that look like a slip.
func (r *reconciler) warn(cluster *v1alpha1.OmniCluster, warning string, slips map[string]slip) {
	if warning == "" {
		return
	}

	r.events.Eventf(cluster, nil, corev1.EventTypeWarning, "WillDestroy", "Settle", "%s", warning)

	for _, found := range slips {
		r.events.Eventf(found.document, nil, corev1.EventTypeWarning, "WillDestroy", "Settle", "OmniCluster %q: %s", cluster.Name, warning)
	}
}

const (
	// destroyedShown is how long a cluster that runs says what was destroyed of it.
	destroyedShown = 24 * time.Hour
	// destroyedTogether is how far apart destructions of one change may be.
	destroyedTogether = 10 * time.Minute
	// maxDestroyed is how many names the status keeps; its field comment says so.
	maxDestroyed = 100
)

// recordDestroyed adds to the status which machines and sets Omni was told to destroy.
func (r *reconciler) recordDestroyed(cluster *v1alpha1.OmniCluster, taken []plan.Change) {
	kept, now := r.lastDestroyed(cluster).DeepCopy(), r.options.Now()

	for _, change := range taken {
		if !change.Destructive || change.Set == "" {
			continue
		}

		if kept == nil || now.Before(kept.Since.Time) || now.Sub(kept.Since.Time) > destroyedTogether {
			begun := metav1.NewTime(now)
			kept = &v1alpha1.LastDestroyed{Since: begun.Rfc3339Copy()} // as it is stored
		}

		if len(kept.Names) < maxDestroyed {
			kept.Names = append(kept.Names, consent.ChangeName(change))
		}

		r.processStates.of(cluster).destroyed = kept
	}

	r.lastDestroyed(cluster)
}

// lastDestroyed returns what was destroyed last. Somebody may change the object while it is destroyed, and the status of that run is not
// stored: the next run stores it.
func (r *reconciler) lastDestroyed(cluster *v1alpha1.OmniCluster) *v1alpha1.LastDestroyed {
	if kept := r.processStates.of(cluster).destroyed; kept != nil {
		cluster.Status.LastDestroyed = kept.DeepCopy()
	}

	return cluster.Status.LastDestroyed
}

// whatWent returns the end of the message of a cluster that runs: what of it was destroyed lately, and which documents list no machine.
func (r *reconciler) whatWent(s *scope) string {
	var text string

	if kept := r.lastDestroyed(s.cluster); kept != nil && r.options.Now().Sub(kept.Since.Time) < destroyedShown {
		text = fmt.Sprintf("; destroyed%s, as the documents say: %s", since(kept.Since.Time), consent.Names(kept.Names))
	}

	var empty []string

	for i := range s.documents.Workers { // sorted: the same text each time
		if o := &s.documents.Workers[i]; listsNone(o) {
			empty = append(empty, fmt.Sprintf("OmniWorkers %q", o.Name))
		}
	}

	if len(empty) > 0 {
		text += "; no machine is listed in " + consent.Names(empty)
	}

	return text
}

// reportApplied records the documents of which nothing is left to do. The others keep their earlier record.
func reportApplied(s *scope) {
	status := &s.cluster.Status
	before := slices.Concat(status.WorkersRefs, status.MachineRefs)

	if status.ControlPlaneRef != nil {
		before = append(before, *status.ControlPlaneRef)
	}

	status.ControlPlaneRef, status.WorkersRefs, status.MachineRefs = nil, nil, nil

	left := s.synced.unproven()

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

// unproven returns the changes that are not done, and those of this run if the local copy does not show them yet. What the
// status says of Omni is read from the copy: with the new generation of a document beside it, that would count as the state
// of this generation.
func (s *synced) unproven() []plan.Change {
	var changes []plan.Change

	if !s.complete {
		changes = s.Left()
	}

	if s.unshown != nil {
		changes = append(changes, s.changed()...)
	}

	return changes
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
