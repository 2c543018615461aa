package omnicluster

import (
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
)

// A resource that had to be changed back so often in that time has a second writer,
// which is nobody's hand: two hubs with the same ID, or a program.
const (
	revertLimit  = 3
	revertWindow = time.Minute
)

// wish is what somebody wants of a cluster, as far as it shows that somebody
// wanted something new.
type wish struct {
	uid       types.UID // of the OmniCluster
	documents string    // their generations
	asked     string    // the requests to reconcile
	deleting  bool
}

// rivalry remembers of one cluster what had to be changed back in Omni. A second
// writer that was found stays found until somebody wants something new.
type rivalry struct {
	wish    wish
	content string                 // hash of the template that was applied
	reverts map[string][]time.Time // by change; a change without a time was made once
	found   string                 // who was found, for people
}

// look starts again when somebody wants something new. That the object is to be
// deleted does not count: the destruction is what must not begin.
func (r *rivalry) look(now wish) {
	before := r.wish
	if begins := now.deleting && !before.deleting; begins && now.uid == before.uid && now.asked == before.asked {
		r.wish = now

		return
	}

	if now != before {
		*r = rivalry{wish: now}
	}
}

// wrote takes in the changes that Omni took, and tells which of them was made so
// often that there is a second writer. settled tells that Omni had all of that
// content before: then each change changes something back.
func (r *rivalry) wrote(changes []plan.Change, content string, settled bool, now time.Time) (plan.Change, bool) {
	if r.content != content {
		r.content, r.reverts = content, map[string][]time.Time{}
	}

	var (
		worst plan.Change
		found bool
	)

	for _, change := range changes {
		key := strings.Join([]string{string(change.Action), change.Type, change.ID}, "|")

		times, made := r.reverts[key]
		if made || settled {
			times = append(times, now)
		}

		times = slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) > revertWindow })
		r.reverts[key] = times

		if !found && len(times) >= revertLimit {
			worst, found = change, true
		}
	}

	return worst, found
}

// wishOf reads what somebody wants of a cluster.
func wishOf(s *scope) wish {
	cluster := s.cluster
	read := wish{
		uid: cluster.UID, deleting: !cluster.DeletionTimestamp.IsZero(),
		asked: cluster.Annotations[v1alpha1.AnnotationReconcileRequestedAt] + "|" + cluster.Annotations[v1alpha1.AnnotationFluxRequestedAt],
	}

	// A deletion is a new generation by itself, the other documents may go before
	// the cluster does, and who sets orphan does not ask for anything in Omni.
	if read.deleting {
		return read
	}

	documents := []client.Object{cluster}

	for i := range s.input.ControlPlanes {
		documents = append(documents, &s.input.ControlPlanes[i])
	}

	for i := range s.input.Workers {
		documents = append(documents, &s.input.Workers[i])
	}

	for i := range s.input.Machines {
		documents = append(documents, &s.input.Machines[i])
	}

	generations := make([]string, 0, len(documents))
	for _, document := range documents {
		generations = append(generations, fmt.Sprintf("%s/%d", document.GetUID(), document.GetGeneration()))
	}

	slices.Sort(generations)
	read.documents = strings.Join(generations, " ")

	return read
}

// describeRival says what was found, and what to do.
func describeRival(s *scope, change plan.Change, now time.Time) string {
	return fmt.Sprintf("%s %q in Omni had to be changed back %d times within a minute, last at %s, although nobody changed the documents of this object: "+
		"something else writes it, too. Since then this object writes and destroys nothing. Look for a second hub with the same objects "+
		"(a copy of this one's etcd has the same ID: give it another --hub-id), or for another program that changes this cluster in Omni. "+
		"When only one is left, go on: kubectl annotate omnicluster %s -n %s --overwrite %s=$(date +%%s)",
		omni.KindOf(change.Type), change.ID, revertLimit, consent.ShownTime(now), s.cluster.Name, s.cluster.Namespace, v1alpha1.AnnotationReconcileRequestedAt)
}

// rivalMemory keeps the rivalry of every cluster. It lives in the process: a
// restart begins to count again.
type rivalMemory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*rivalry
}

func newRivalMemory() *rivalMemory {
	return &rivalMemory{entries: map[types.NamespacedName]*rivalry{}}
}

// look says which second writer was found; empty: none.
func (m *rivalMemory) look(s *scope) string {
	m.mu.Lock()
	defer m.mu.Unlock()

	entry := m.entries[client.ObjectKeyFromObject(s.cluster)]
	if entry == nil {
		return ""
	}

	entry.look(wishOf(s))

	return entry.found
}

// wrote takes in the changes that Omni took in this run, and says which second writer is found
// with it; empty: none.
func (m *rivalMemory) wrote(s *scope, changes []plan.Change, now time.Time) string {
	if len(changes) == 0 {
		return ""
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	name := client.ObjectKeyFromObject(s.cluster)

	entry := m.entries[name]
	if entry == nil {
		entry = &rivalry{}
		m.entries[name] = entry
	}

	entry.look(wishOf(s))

	content := s.rendered.hash
	if change, found := entry.wrote(changes, content, s.cluster.Status.TemplateHash == content, now); found {
		entry.found = describeRival(s, change, now)
	}

	return entry.found
}

// forget drops a cluster.
func (m *rivalMemory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.entries, name)
}
