package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

const (
	// refusalPause is how soon after a refusal the same change is tried again,
	// when the cluster is looked at because something changed in Omni. The rest of
	// the cluster may be changing all the time.
	refusalPause = 5 * time.Second
	// maxRefusals is how many refusals status.refusals lists.
	maxRefusals = 10
	// maxRefusalsTold is how many of them a message tells in full.
	maxRefusalsTold = 3
)

// refusal is a change that Omni refused, and when it was tried.
type refusal struct {
	*plan.ChangeError

	at time.Time
}

// refusalMemory keeps what Omni refused a moment ago. It lives in the process: a
// restart tries again.
type refusalMemory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]remembered
}

// remembered are the refusals of what was asked for.
type remembered struct {
	asked    string
	refusals []refusal
}

func newRefusalMemory() *refusalMemory {
	return &refusalMemory{entries: map[types.NamespacedName]remembered{}}
}

// of is what need not be tried again now for what a run asks for.
func (m *refusalMemory) of(s *scope, now time.Time) knownRefusals {
	m.mu.Lock()
	defer m.mu.Unlock()

	known := knownRefusals{now: now}

	if entry := m.entries[client.ObjectKeyFromObject(s.cluster)]; entry.asked == askedFor(s) {
		for _, one := range entry.refusals {
			if now.Sub(one.at) < refusalPause {
				known.refusals = append(known.refusals, one)
			}
		}
	}

	return known
}

// keep takes over what a run found.
func (m *refusalMemory) keep(s *scope, refusals []refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()

	name := client.ObjectKeyFromObject(s.cluster)
	if len(refusals) == 0 {
		delete(m.entries, name)
	} else {
		m.entries[name] = remembered{asked: askedFor(s), refusals: refusals}
	}
}

// forget drops a cluster.
func (m *refusalMemory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.entries, name)
}

// askedFor identifies what a user wants: with anything else, what was refused is
// tried again at once.
func askedFor(s *scope) string {
	annotations := s.cluster.Annotations

	return strings.Join([]string{
		string(s.cluster.UID), template.Hash(s.rendered), s.cluster.Spec.ApprovedPlan,
		annotations[v1alpha1.AnnotationReconcileRequestedAt], annotations[v1alpha1.AnnotationFluxRequestedAt],
	}, "|")
}

// knownRefusals are those of a moment ago.
type knownRefusals struct {
	now      time.Time
	refusals []refusal
}

// find is omni.ApplyOptions.Known.
func (k knownRefusals) find(change plan.Change) *plan.ChangeError {
	for _, one := range k.refusals {
		if known := one.Change; known.Action == change.Action && known.Key() == change.Key() {
			return one.ChangeError
		}
	}

	return nil
}

// next says when each refusal of a run was tried: a known one was not tried in it.
func (k knownRefusals) next(refused []*plan.ChangeError) []refusal {
	var next []refusal

	for _, failed := range refused {
		at := k.now
		if i := slices.IndexFunc(k.refusals, func(one refusal) bool { return one.ChangeError == failed }); i >= 0 {
			at = k.refusals[i].at
		}

		next = append(next, refusal{ChangeError: failed, at: at})
	}

	return next
}

// explainRefusals tells which parts Omni refuses, and why. Whatever else the rest
// of the plan waits for is told, too.
func (r *reconciler) explainRefusals(ctx context.Context, s *scope) loop.Outcome {
	told := make([]string, 0, maxRefusalsTold)

	for _, one := range s.refused[:min(maxRefusalsTold, len(s.refused))] {
		text := s.secrets.clean(ctx, omni.Message(one.ChangeError))
		if documents := documentsOf(s, one.Change); len(documents) > 0 {
			text = documents[0].Kind + " " + fmt.Sprintf("%q: ", documents[0].Name) + text
		}

		told = append(told, text)
	}

	text := strings.Join(told, "; ")
	if rest := len(s.refused) - len(told); rest > 0 {
		text += fmt.Sprintf("; %d more refusals: see status.refusals", rest)
	}

	if untried := s.decision.Untried(); len(untried) > 0 {
		text += fmt.Sprintf("; %s until then: %s", waits(len(untried)), consent.ChangeNames(untried))
	}

	if done := s.decision.Done(); len(done) > 0 {
		text += "; Omni took " + consent.ChangeNames(done)
	}

	text += fmt.Sprintf("; it is tried again when a document or something of the cluster in Omni changes, and every %s",
		r.kind().Interval(s.cluster))

	others := s.decision.Outcome()
	if others.Message() != "" {
		text += "; besides: " + others.Message()
	}

	return loop.Stall(v1alpha1.ReasonRefused, "%s", text).Within(others.After()).Within(r.untilRetry(s))
}

func waits(count int) string {
	if count == 1 {
		return "1 change waits"
	}

	return fmt.Sprintf("%d changes wait", count)
}

// untilRetry is how long the refusals that were not tried in this run are left
// alone; 0 if all were.
func (r *reconciler) untilRetry(s *scope) time.Duration {
	var soonest time.Duration

	now := r.options.Now()

	for _, one := range s.refused {
		left := refusalPause - now.Sub(one.at)
		if tried := left >= refusalPause; tried || left <= 0 {
			continue
		}

		if soonest == 0 || left < soonest {
			soonest = left
		}
	}

	return soonest
}

// refusalStatus is what the status shows of the refusals.
func refusalStatus(ctx context.Context, s *scope) []v1alpha1.RefusedChange {
	var shown []v1alpha1.RefusedChange

	for _, one := range s.refused[:min(maxRefusals, len(s.refused))] {
		shown = append(shown, v1alpha1.RefusedChange{
			Action: consent.ActionOf(one.Change), Type: one.Change.Type, ID: one.Change.ID,
			Message: s.secrets.clean(ctx, omni.Message(one.ChangeError)), Documents: documentsOf(s, one.Change),
		})
	}

	return shown
}

// documentsOf are the documents whose part a change is: that of the machine set
// first, then that of the machine. What belongs to the whole cluster has none.
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

// has tells whether a change is about what the document asks for.
func (p part) has(change plan.Change) bool {
	return p.set != "" && change.Set == p.set || change.Machine != "" && slices.Contains(p.machines, change.Machine)
}

// partsOf are the parts of a cluster, those with machine sets first.
func partsOf(s *scope) []part {
	if s.documents == nil {
		return nil
	}

	controlPlane := s.documents.ControlPlane
	parts := []part{{
		kind: "OmniControlPlane", document: controlPlane,
		set: s.name + "-" + v1alpha1.ControlPlaneSetName, machines: controlPlane.Spec.Machines,
	}}

	for i := range s.documents.Workers {
		workers := &s.documents.Workers[i]
		parts = append(parts, part{
			kind: "OmniWorkers", document: workers, set: s.name + "-" + workers.EffectiveWorkerSetName(), machines: workers.Spec.Machines,
		})
	}

	for i := range s.documents.Machines {
		machine := &s.documents.Machines[i]
		parts = append(parts, part{kind: "OmniMachine", document: machine, machines: []string{machine.EffectiveMachineID()}})
	}

	return parts
}
