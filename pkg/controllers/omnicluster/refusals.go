package omnicluster

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// refusalPause is how soon after a refusal the same change is tried again,
// when the cluster is looked at because something changed in Omni. The rest of
// the cluster may be changing all the time.
const refusalPause = 5 * time.Second

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
		string(s.cluster.UID), s.rendered.hash, s.cluster.Spec.ApprovedPlan,
		annotations[v1alpha1.AnnotationReconcileRequestedAt], annotations[v1alpha1.AnnotationFluxRequestedAt],
	}, "|")
}

// knownRefusals are those of a moment ago.
type knownRefusals struct {
	now      time.Time
	refusals []refusal
}

// find is plan.ApplyOptions.Known.
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
