package omnisecretsync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// write gives the target its desired content, and then removes the Secrets at this object's other locations.
func (r *reconciler) write(ctx context.Context, s *scope) (loop.Outcome, error) {
	wanted := wantedLocation(s.sync)

	// The status records where a Secret may be before there is one. Otherwise nothing would look for it after a crash,
	// or after the next change of the target.
	if !slices.Contains(knownLocations(s.sync), wanted) {
		if len(s.sync.Status.PendingTargets) >= mostPending {
			return r.removeOldest(ctx, s)
		}

		s.aboutToWrite = true

		return loop.Persist(v1alpha1.ReasonProgressing, "about to write Secret %s", wanted), nil
	}

	outcome, err := r.writeTarget(ctx, s, wanted)
	if err != nil {
		return explain(s, err), nil
	}

	if !outcome.Continues() {
		return outcome, nil
	}

	s.synced = true

	if err := r.removeFormers(ctx, s, wanted); err != nil {
		return explain(s, err), nil
	}

	return outcome, nil
}

// removeFormers removes the Secrets at all locations but the target. One that may not be removed does not hold back the others.
func (r *reconciler) removeFormers(ctx context.Context, s *scope, target location) error {
	var forbidden error

	for _, former := range knownLocations(s.sync) {
		if former == target {
			continue
		}

		switch err := r.removeFormer(ctx, s, former); {
		case err == nil:
			s.removed = append(s.removed, former)
		case apierrors.IsForbidden(err):
			forbidden = cmp.Or(forbidden, err)
		default:
			return err
		}
	}

	return forbidden
}

// removeFormer removes the Secret at a location that is no longer the target, or leaves it, as the policy says. A location that
// this object may not read cannot block the target for ever: if no write there was ever confirmed, an event reports it instead.
// One that was confirmed is reported if it stays, because the status forgets it.
func (r *reconciler) removeFormer(ctx context.Context, s *scope, former location) error {
	written := s.confirmedHere(former)

	if s.sync.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		if written || s.mayBeOurs(ctx, former) {
			r.announceLeft(s, former, orphaned)
		}

		return nil
	}

	kept, err := r.remove(ctx, s, s.opened.Cluster, former)

	switch {
	case err == nil && kept != "" && written:
		r.announceLeft(s, former, kept)
	case err != nil && apierrors.IsForbidden(err) && !written:
		r.announceLeft(s, former, s.opened.Cluster.Message(err))
	case apierrors.IsForbidden(err):
		return fmt.Errorf("remove the former target %s (or set spec.deletionPolicy to Orphan to leave it there): %w", former, err)
	case err != nil:
		return fmt.Errorf("remove the former target %s: %w", former, err)
	}

	return nil
}

// mayBeOurs reports whether what is at a location carries the object's mark, or cannot be read.
func (s *scope) mayBeOurs(ctx context.Context, where location) bool {
	live, err := read(ctx, s.opened.Cluster, where)

	return err == nil && carriesMark(live, string(s.sync.UID)) || err != nil && !clusteraccess.NotFound(err)
}

// removeOldest makes room for another location: a target that changes again and again while nothing can be written must
// not let the status grow without end.
func (r *reconciler) removeOldest(ctx context.Context, s *scope) (loop.Outcome, error) {
	oldest := pendingLocations(s.sync)[0]

	if err := r.removeFormer(ctx, s, oldest); err != nil {
		return explain(s, err), nil
	}

	s.oldestRemoved = true

	return loop.Persist(v1alpha1.ReasonProgressing, "about to write Secret %s", wantedLocation(s.sync)), nil
}

// writeTarget carries out the decision of claim.decide.
func (r *reconciler) writeTarget(ctx context.Context, s *scope, wanted location) (loop.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, locationTimeout)
	defer cancel()

	live, err := read(ctx, s.opened.Cluster, wanted)
	if clusteraccess.NotFound(err) {
		live = nil
	} else if err != nil {
		return loop.Outcome{}, fmt.Errorf("read Secret %s: %w", wanted, err)
	} else {
		s.held = live.Data
	}

	todo, why := claim{
		uid: string(s.sync.UID), known: s.confirmedHere(wanted),
		adopt: s.sync.Spec.Adopt, hubs: s.opened.Hubs, names: s.opened.Names, from: s.source, live: live, want: s.want,
	}.decide()

	if wait := r.rewritePause(s, wanted); wait > 0 && (todo == actionUpdate || todo == actionReplace) {
		return loop.Wait(wait, v1alpha1.ReasonConflict, "somebody in the workload cluster changed Secret %s (%s) right after it was written; it is written again once a minute: "+
			"find out who does that, or choose another spec.targetSecretRef", wanted, s.want.difference(live)), nil
	}

	if todo == actionCreate && s.confirmedHere(wanted) {
		if outcome := s.opened.MakeAgain("Secret " + wanted.String()); !outcome.Continues() {
			return outcome, nil
		}
	}

	switch todo {
	case actionRefuse:
		return loop.Stall(v1alpha1.ReasonForeignTarget, "%s", why), nil
	case actionKeep:
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "%s", why), nil
	case actionWait:
		return loop.Wait(clusterPause, v1alpha1.ReasonTargetDeleting, "%s", why), nil
	default:
	}

	if outcome, err := r.act(ctx, s, wanted, live, todo); err != nil || !outcome.Continues() {
		return outcome, err
	}

	return loop.Continue(v1alpha1.ReasonUpToDate, "Secret %s in the workload cluster is as the source", wanted), nil
}

// act makes the Secret as it has to be. The outcome continues when it is.
func (r *reconciler) act(ctx context.Context, s *scope, wanted location, live *corev1.Secret, todo action) (loop.Outcome, error) {
	var (
		verb, cause string // of what is announced
		err         error
	)

	outcome := loop.Proceed()

	switch todo {
	case actionUpdate:
		verb, cause = "Updated", "was changed there"
		outcome, err = r.overwrite(ctx, s, wanted, live, false)
	case actionMark:
		outcome, err = r.overwrite(ctx, s, wanted, live, true)
	case actionReplace:
		verb, cause = "Replaced", "was changed there"
		err = r.replace(ctx, s, wanted, live)
	case actionCreate:
		verb, cause = "Created", "was deleted there"
		err = r.create(ctx, s, wanted)
	default:
	}

	if err == nil && outcome.Continues() && verb != "" {
		r.wrote(s, verb, wanted, cause)
	}

	return outcome, err
}

// replace deletes a Secret that was read, and makes it again.
func (r *reconciler) replace(ctx context.Context, s *scope, wanted location, live *corev1.Secret) error {
	if err := wouldTake(ctx, s, wanted); err != nil {
		return fmt.Errorf("replace Secret %s: %w", wanted, err)
	}

	if err := deleteExactly(ctx, s.opened.Cluster, wanted, live); err != nil {
		return fmt.Errorf("delete Secret %s to make it again: %w", wanted, err)
	}

	return r.create(ctx, s, wanted)
}

// overwrite writes the content over a Secret that was read. It says so if that gives the Secret this hub's mark.
func (r *reconciler) overwrite(ctx context.Context, s *scope, wanted location, live *corev1.Secret, marks bool) (loop.Outcome, error) {
	former := live.Labels[labelHub]
	taken := carriesMark(live, string(s.sync.UID)) && s.opened.Hubs.IsPrevious(former)

	s.want.fill(live)

	result, err := update(ctx, s.opened.Cluster, wanted, live)

	switch {
	case clusteraccess.NotFound(err): // the namespace was there a moment ago
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "Secret %s was deleted in the workload cluster meanwhile", wanted), nil
	case err != nil:
		return loop.Outcome{}, fmt.Errorf("update Secret %s: %w", wanted, err)
	}

	// An admission webhook in the workload cluster may change the Secret as it likes. Reporting each such write would
	// change the status, and that would trigger the next run.
	if parts := s.want.difference(result); parts != "" {
		return loop.Stall(v1alpha1.ReasonRefused, "the workload cluster changes Secret %s while it is written (%s): an admission webhook or policy there does that; exempt the Secret from it",
			wanted, parts), nil
	}

	if marks || taken {
		hubs.Marked(r.events, s.sync, fmt.Sprintf("Secret %s in the workload cluster", wanted), former)
	}

	return loop.Proceed(), nil
}

// rewritePause returns how long to wait before the same content is written again.
func (r *reconciler) rewritePause(s *scope, wanted location) time.Duration {
	if !s.wroteThis(wanted) {
		return 0
	}

	return loop.RewritePause(s.sync, s.sync.Status.LastSyncTime.Time, r.options.Now())
}

// confirmedHere reports whether a write of a Secret there is known to have succeeded, in the cluster that is opened: the user may
// have accepted another one since.
func (s *scope) confirmedHere(where location) bool {
	return confirmed(s.sync, where) && clusteraccess.Moved(s.sync.Status.ClusterID, s.opened.ClusterID) == ""
}

// wroteThis reports whether this very content was written there before, with the labels and annotations of this generation. A run
// that failed observes a generation, too; statuses of earlier releases have nothing better, and those left a label out.
func (s *scope) wroteThis(where location) bool {
	status := &s.sync.Status

	if _, leftOut := s.sync.Spec.Labels[labelManagedBy]; leftOut && status.Target != nil && status.Target.Generation == 0 {
		return false
	}

	return where == writtenLocation(s.sync) && s.confirmedHere(where) && status.LastSyncTime != nil && status.Target.Hash == s.want.hash() &&
		cmp.Or(status.Target.Generation, status.ObservedGeneration) == s.sync.Generation
}

// wrote records a write and announces it, also that it reverts a change in the workload cluster, if the same content
// was written before.
func (r *reconciler) wrote(s *scope, what string, where location, why string) {
	s.wrote = true

	if s.wroteThis(where) {
		r.events.Eventf(s.sync, nil, corev1.EventTypeNormal, "Corrected", "Correct",
			"%s Secret %s in the workload cluster: it %s, and is again as the source says", what, where, why)

		return
	}

	r.events.Eventf(s.sync, nil, corev1.EventTypeNormal, what, what, "%s Secret %s in the workload cluster", what, where)
}

// explain converts an error of the workload cluster into the outcome for the user.
func explain(s *scope, err error) loop.Outcome {
	cluster := s.opened.Cluster
	// Who refuses that a Secret is changed or deleted may quote it as it was.
	message := cluster.Message(err, s.want.secrets(), content{data: s.held}.secrets())

	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "changed in the workload cluster meanwhile: %s", message)
	case clusteraccess.NotFound(err):
		return loop.Stall(v1alpha1.ReasonNamespaceNotFound, "%s; create the namespace, or set spec.createNamespace", message)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return loop.Stall(v1alpha1.ReasonRefused, "the workload cluster refuses the Secret: %s", message)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return loop.Wait(clusterPause, v1alpha1.ReasonNamespaceNotFound, "namespace %s in the workload cluster is being deleted; the Secret is written when there is a new one",
			s.sync.Spec.TargetSecretRef.Namespace)
	case apierrors.IsForbidden(err):
		return clusteraccess.Forbidden(s.sync, message)
	}

	if clusteraccess.Unreachable(err) {
		cluster.Invalidate()
	}

	return loop.Wait(clusterPause, clusteraccess.Reason(err), "%s", message)
}

// clusterPause is how long to wait before a workload cluster that failed is tried again.
const clusterPause = 10 * time.Second
