package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// maxMessageBytes is how long the message of a condition is at most. The API accepts 32768 bytes, which is more than
// anybody reads.
const maxMessageBytes = 4096

// errNoOutcome is the error of a phase that returned neither an outcome nor an error.
var errNoOutcome = errors.New("a phase ended without an outcome")

// runResult is the result of the phases of one run.
type runResult struct {
	last Outcome
	err  error
}

// run runs the phases and writes everything into the object's status, in memory.
func (r *Reconciler[O, S]) run(ctx context.Context, object O, deleting bool) runResult {
	ctx, cancel := context.WithTimeout(ctx, r.settings.Timeout)
	defer cancel()

	suspended := !deleting && r.kind.Suspended != nil && r.kind.Suspended(object)
	status := object.GetReconcileStatus()
	writer := conditionWriter{conditions: status.ConditionsPtr(), generation: object.GetGeneration()}
	result := runResult{last: Continue(v1alpha1.ReasonSucceeded, "")}

	if r.kind.Prepare != nil {
		r.kind.Prepare(ctx, object)
	}

	if !suspended || r.kind.RunSuspended {
		scope := r.kind.NewScope(object)
		phases := r.kind.Phases

		if r.kind.Close != nil {
			defer r.kind.Close(scope)
		}

		if deleting {
			phases = r.kind.Delete
		}

		result = runPhases(ctx, phases, scope, writer)

		if r.kind.Report != nil {
			// A run that took too long still reports its results.
			r.kind.Report(context.WithoutCancel(ctx), scope)
		}

		if r.kind.Transient != nil {
			writer.setTransient(r.kind.Transient(scope))
		}
	}

	status.ObservedGeneration = object.GetGeneration()
	status.LastHandledReconcileAt = RequestedAt(object)

	switch {
	case deleting:
		writer.summarizeDeletion(result.last)
	case suspended:
		writer.summarizeSuspended()
	default:
		writer.summarize(result.last)
	}

	return result
}

// HasFailed reports, while a kind reports a run, whether one of its phases ended with an error: a stop of the process is one, too. The
// conditions that are derived from those of the phases are still those of the run before.
func HasFailed(conditions []metav1.Condition) bool {
	derived := []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionDeletionBlocked}

	return slices.ContainsFunc(conditions, func(condition metav1.Condition) bool {
		return condition.Reason == v1alpha1.ReasonError && !slices.Contains(derived, condition.Type)
	})
}

// runPhases runs phases until one does not continue.
func runPhases[S any](ctx context.Context, phases []Phase[S], scope S, writer conditionWriter) runResult {
	result := runResult{last: Continue(v1alpha1.ReasonSucceeded, "")}

	var noted time.Duration // what was only noted is looked at again by then, whatever the later phases say

	for i, phase := range phases {
		began := time.Now()

		outcome, err := phase.Run(ctx, scope)
		if err == nil && outcome.reason == "" {
			err = errNoOutcome
		}

		if err != nil {
			outcome = Wait(0, v1alpha1.ReasonError, "%s", err.Error())
		}

		logPhase(ctx, cmp.Or(phase.Condition, fmt.Sprintf("deletion, step %d", i+1)), outcome, time.Since(began))
		writer.set(phase.Condition, conditionStatus(outcome, phase.Abnormal), outcome.reason, outcome.message)

		if outcome = outcome.Within(noted); outcome.verdict == verdictNote {
			noted = outcome.after
		}

		if outcome.verdict != verdictSkip {
			result = runResult{last: outcome, err: err}
		}

		if outcome.Continues() {
			continue
		}

		for _, later := range phases[i+1:] {
			writer.set(later.Condition, metav1.ConditionUnknown, v1alpha1.ReasonBlocked, "waits for "+phase.Condition)
		}

		break
	}

	return result
}

// logPhase logs a phase that has ended, at -v=1, for following one object. The message is in the condition, but for that
// of a Postpone, which no condition shows.
func logPhase(ctx context.Context, phase string, outcome Outcome, took time.Duration) {
	log := logf.FromContext(ctx).V(1)
	if !log.Enabled() {
		return
	}

	values := []any{"phase", phase, "outcome", outcome.verdict.String(), "reason", outcome.reason, "took", took.Round(time.Millisecond).String()}
	if outcome.verdict == verdictPostpone {
		values = append(values, "message", redact.Bounded(outcome.message, maxMessageBytes))
	}

	log.Info("Phase ended", values...)
}

// conditionStatus returns the status of a phase's condition for its outcome.
func conditionStatus(outcome Outcome, abnormal bool) metav1.ConditionStatus {
	switch {
	case outcome.verdict == verdictSkip:
		return metav1.ConditionUnknown
	case (outcome.verdict == verdictContinue) != abnormal:
		return metav1.ConditionTrue
	default:
		return metav1.ConditionFalse
	}
}

// conditionWriter writes the conditions of one object.
type conditionWriter struct {
	conditions *[]metav1.Condition
	generation int64
}

func (w conditionWriter) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	if conditionType == "" {
		return
	}

	apimeta.SetStatusCondition(w.conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: redact.Bounded(redact.Printable(strings.ToValidUTF8(message, "?")), maxMessageBytes), ObservedGeneration: w.generation,
	})
}

func (w conditionWriter) remove(conditionTypes ...string) {
	for _, conditionType := range conditionTypes {
		// The library copies all conditions to remove one, even one that is not there.
		if apimeta.FindStatusCondition(*w.conditions, conditionType) != nil {
			apimeta.RemoveStatusCondition(w.conditions, conditionType)
		}
	}
}

// setTransient sets and removes the conditions of a kind that exist only while they are true.
func (w conditionWriter) setTransient(conditions []TransientCondition) {
	for _, one := range conditions {
		if one.On {
			w.set(one.Condition, metav1.ConditionTrue, one.Reason, one.Message)
		} else {
			w.remove(one.Condition)
		}
	}
}

// summarize derives Ready, Reconciling and Stalled from the last outcome.
// Conditions are set before others are removed.
func (w conditionWriter) summarize(last Outcome) {
	switch {
	case last.Continues():
		w.set(v1alpha1.ConditionReady, metav1.ConditionTrue, last.reason, last.message)
		w.remove(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
	case last.Stalls():
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, last.reason, last.message)
		w.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, last.reason, last.message)
		w.remove(v1alpha1.ConditionReconciling)
	default:
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, last.reason, last.message)
		w.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, last.reason, last.message)
		w.remove(v1alpha1.ConditionStalled)
	}

	w.remove(v1alpha1.ConditionSuspended, v1alpha1.ConditionDeletionBlocked)
}

// summarizeSuspended leaves Ready as it was, of this generation, so that nobody who waits for it waits in vain because of a change
// that was only staged. An object that was never reconciled has Unknown.
func (w conditionWriter) summarizeSuspended() {
	const message = "spec.suspend is set: nothing is changed"

	w.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, message)

	ready := apimeta.FindStatusCondition(*w.conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionUnknown {
		w.set(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonSuspended, message)
	} else { // kubectl wait looks at the generation of the condition
		w.set(v1alpha1.ConditionReady, ready.Status, ready.Reason, ready.Message)
	}

	w.remove(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionDeletionBlocked)
}

// summarizeDeletion writes the conditions of a deletion that is not over.
func (w conditionWriter) summarizeDeletion(last Outcome) {
	reason, message := last.reason, last.message
	if last.Continues() {
		reason, message = v1alpha1.ReasonDeleting, "the object is being deleted"
	}

	w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	w.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)

	if last.Blocks() || last.Stalls() {
		w.set(v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, reason, message)
	} else {
		w.remove(v1alpha1.ConditionDeletionBlocked)
	}

	w.remove(v1alpha1.ConditionStalled, v1alpha1.ConditionSuspended)
}

// readyChanged returns the new Ready condition if its status or reason has changed.
func readyChanged(before, after *v1alpha1.ReconcileStatus) *metav1.Condition {
	was := apimeta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	is := apimeta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)

	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}

	changed := *is

	return &changed
}

// isSuspicious reports whether a reason to wait is more likely a mistake or a fault than a matter of time.
func isSuspicious(reason string) bool {
	switch reason {
	case v1alpha1.ReasonError, v1alpha1.ReasonUnreachable, v1alpha1.ReasonConnectionNotFound, v1alpha1.ReasonConnectionNotReady,
		v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretKeyNotFound, v1alpha1.ReasonValueNotFound, v1alpha1.ReasonRenewalFailing:
		return true
	default:
		return false
	}
}

// announce sends the event of a changed Ready. Waiting is normal; a stall and a suspicious reason are warnings.
func (r *Reconciler[O, S]) announce(object O, ready metav1.Condition) {
	eventType := corev1.EventTypeNormal

	conditions := object.GetReconcileStatus().Conditions
	if apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) ||
		apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionDeletionBlocked) ||
		isSuspicious(ready.Reason) {
		eventType = corev1.EventTypeWarning
	}

	message := ready.Message
	if message == "" {
		message = ready.Reason
	}

	r.settings.Events.Eventf(object, nil, eventType, ready.Reason, "Reconcile", "%s", message)
}
