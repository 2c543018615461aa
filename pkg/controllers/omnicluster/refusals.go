package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// refusalPause is how soon after a refusal the same change is tried again, if the cluster is reconciled because
// something changed in Omni. The rest of the cluster may change all the time.
const refusalPause = 5 * time.Second

// refusal is a change that Omni refused, with the time of the attempt.
type refusal struct {
	*plan.ChangeError

	at time.Time
}

// keptRefusals are those of the last run, for one desired state.
type keptRefusals struct {
	asked    string
	refusals []refusal
}

// recentRefusals returns the refusals that a run need not try again yet.
func (r *reconciler) recentRefusals(s *scope) recentRefusals {
	recent := recentRefusals{now: r.options.Now()}

	if before := r.processStates.of(s.cluster).refusals; before.asked == askedFor(s) {
		for _, one := range before.refusals {
			if recent.now.Sub(one.at) < refusalPause {
				recent.refusals = append(recent.refusals, one)
			}
		}
	}

	return recent
}

// askedFor returns a key of the desired state: when it changes, refused changes are tried again at once. A turn in a rollout
// is a part of it: Omni may take together with the changes of the turn what it refused without them.
func askedFor(s *scope) string {
	turn := ""
	if status := s.cluster.Status.Rollout; stateOf(status) == v1alpha1.RolloutAdmitted {
		turn = status.Hash
	}

	return strings.Join([]string{s.rendered.hash, s.cluster.Spec.ApprovedPlan, loop.Requests(s.cluster), turn}, "|")
}

// recentRefusals are those that a run does not try again.
type recentRefusals struct {
	now      time.Time // when the run chose what it does not try
	refusals []refusal
}

// find is plan.ApplyOptions.RecentRefusal.
func (r recentRefusals) find(change plan.Change) *plan.ChangeError {
	for _, one := range r.refusals {
		if one.Change.Action == change.Action && one.Change.Key() == change.Key() {
			return one.ChangeError
		}
	}

	return nil
}

// next returns the refusals of a run with the time of each attempt: one that the run did not try keeps its time.
func (r recentRefusals) next(refused []*plan.ChangeError) []refusal {
	var next []refusal

	for _, failed := range refused {
		one := refusal{ChangeError: failed, at: r.now}
		if i := r.index(one); i >= 0 {
			one = r.refusals[i]
		}

		next = append(next, one)
	}

	return next
}

// untilRetry returns how long the refusals that the run did not try again have to wait; 0 if it tried all. It counts from
// the choice what to try, as the choice itself does: a run may take longer than the rest of a pause.
func (r recentRefusals) untilRetry(refused []refusal) time.Duration {
	var soonest time.Duration

	for _, one := range refused {
		if r.index(one) < 0 {
			continue
		}

		if left := refusalPause - r.now.Sub(one.at); soonest == 0 || left < soonest {
			soonest = left
		}
	}

	return soonest
}

// index returns the place of a refusal that the run did not try again; -1 if it tried it.
func (r recentRefusals) index(one refusal) int {
	return slices.IndexFunc(r.refusals, func(other refusal) bool { return other.ChangeError == one.ChangeError })
}

const (
	// maxRefusals is how many refusals status.refusals lists.
	maxRefusals = 10
	// maxRefusalsTold is how many of them a message has in full.
	maxRefusalsTold = 3
)

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
