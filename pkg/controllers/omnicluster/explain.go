package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

const (
	// maxRefusals is how many refusals status.refusals lists.
	maxRefusals = 10
	// maxRefusalsTold is how many of them a message has in full.
	maxRefusalsTold = 3
)

// explainApply converts the error of an apply into the outcome for the user. It names the changes that were made before
// the error; they stay.
func explainApply(ctx context.Context, secrets *values.Secrets, done []plan.Change, err error) (loop.Outcome, error) {
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

// explainRefusals returns the outcome that names the refused parts with the reasons, and what the rest of the plan
// waits for.
func (r *reconciler) explainRefusals(ctx context.Context, s *scope, recent recentRefusals) loop.Outcome {
	found, told := s.synced, make([]string, 0, maxRefusalsTold)

	for _, one := range found.refusals[:min(maxRefusalsTold, len(found.refusals))] {
		text := s.rendered.secrets.Clean(ctx, omni.Message(one.ChangeError))
		if documents := documentsOf(s, one.Change); len(documents) > 0 {
			text = documents[0].Kind + " " + fmt.Sprintf("%q: ", documents[0].Name) + text
		}

		told = append(told, text)
	}

	text := strings.Join(told, "; ")
	if rest := len(found.refusals) - len(told); rest > 0 {
		text += fmt.Sprintf("; %d more refusals: see status.refusals", rest)
	}

	if untried := found.Untried(); len(untried) > 0 {
		text += fmt.Sprintf("; %s until then: %s", waits(len(untried)), consent.ChangeNames(untried))
	}

	if done := found.Done(); len(done) > 0 {
		text += "; Omni took " + consent.ChangeNames(done)
	}

	text += fmt.Sprintf("; it is tried again when a document or something of the cluster in Omni changes, and every %s",
		r.kind().Interval(s.cluster))

	others := found.Outcome()
	if !others.Continues() {
		text += "; besides: " + others.Message()
	}

	return loop.Stall(v1alpha1.ReasonRefused, "%s", text).Within(others.After()).Within(recent.untilRetry(found.refusals))
}

func waits(count int) string {
	if count == 1 {
		return "1 change waits"
	}

	return fmt.Sprintf("%d changes wait", count)
}

// refusalStatus returns status.refusals.
func refusalStatus(ctx context.Context, s *scope) []v1alpha1.RefusedChange {
	var shown []v1alpha1.RefusedChange

	for _, one := range s.synced.refusals[:min(maxRefusals, len(s.synced.refusals))] {
		shown = append(shown, v1alpha1.RefusedChange{
			Action: consent.ActionOf(one.Change), Type: one.Change.Type, ID: one.Change.ID,
			Message: s.rendered.secrets.Clean(ctx, omni.Message(one.ChangeError)), Documents: documentsOf(s, one.Change),
		})
	}

	return shown
}

// documentsOf returns the documents that a change belongs to: that of the machine set first, then that of the machine.
// A change of the whole cluster has none.
func documentsOf(s *scope, change plan.Change) []v1alpha1.RefusedDocument {
	var found []v1alpha1.RefusedDocument

	for _, part := range partsOf(s) {
		if part.has(change) {
			found = append(found, v1alpha1.RefusedDocument{
				Kind: part.kind, Name: part.document.GetName(), UID: string(part.document.GetUID()), Generation: part.document.GetGeneration(),
			})
		}
	}

	return found
}

// part is what one document asks for in Omni.
type part struct {
	kind     string
	document client.Object
	set      string   // the ID of the machine set in Omni
	machines []string // the machines that it lists, or describes
}

// has reports whether a change affects what the document asks for.
func (p part) has(change plan.Change) bool {
	return p.set != "" && change.Set == p.set || change.Machine != "" && slices.Contains(p.machines, change.Machine)
}

// partsOf returns the parts of a cluster, those with machine sets first.
func partsOf(s *scope) []part {
	if s.documents == nil {
		return nil
	}

	controlPlane := s.documents.ControlPlane
	parts := []part{{
		kind: "OmniControlPlane", document: controlPlane,
		set: s.name + "-" + v1alpha1.ControlPlaneSetName, machines: controlPlane.Spec.MachineIDs(),
	}}

	for i := range s.documents.Workers {
		workers := &s.documents.Workers[i]
		parts = append(parts, part{
			kind: "OmniWorkers", document: workers, set: s.name + "-" + workers.EffectiveWorkerSetName(), machines: workers.Spec.MachineIDs(),
		})
	}

	for i := range s.documents.Machines {
		machine := &s.documents.Machines[i]
		parts = append(parts, part{kind: "OmniMachine", document: machine, machines: []string{machine.EffectiveMachineID()}})
	}

	return parts
}
