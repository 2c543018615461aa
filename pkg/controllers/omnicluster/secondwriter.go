package omnicluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// A resource that had to be changed back this often within this time has a second writer that is no person: another hub
// with the same ID, or a program.
const (
	revertLimit  = 3
	revertWindow = time.Minute
)

// intent has the parts of an object's spec and documents that change when a user wants something new.
type intent struct {
	documents map[types.UID]int64 // their generations; nil if they are not known, or do not count
	asked     string              // the requests to reconcile
	deleting  bool
}

// equals reports whether a user wants nothing new.
func (i intent) equals(other intent) bool {
	return i.asked == other.asked && i.deleting == other.deleting && maps.Equal(i.documents, other.documents)
}

// revertWatch records what had to be changed back in Omni for one cluster. A second writer that was found stays
// recorded until the intent changes.
type revertWatch struct {
	intent  intent
	content string                 // hash of the template that was applied
	reverts map[string][]time.Time // when each change was made again; empty after the first time
	found   string                 // who was found, for people
}

// observe starts again when the intent changes. A second writer that was found stays if something is to go: neither the
// deletion of the cluster nor that of a document counts as a new intent then, nor an edit whose plan removes something. The
// destruction is exactly what must not begin.
func (r *revertWatch) observe(now intent, removes bool) {
	before := r.intent
	if now.asked == before.asked && (now.deleting && !before.deleting || before.documents == nil && !before.deleting) {
		r.intent = now

		return
	}

	if r.found != "" && now.asked == before.asked {
		if removes {
			return
		}

		maps.DeleteFunc(before.documents, func(uid types.UID, _ int64) bool {
			_, stays := now.documents[uid]

			return !stays
		})
	}

	if !now.equals(before) {
		*r = revertWatch{intent: now}
	}
}

// wrote records the changes that Omni took, and returns the one that was made so often that there is a second writer.
// applied is true if Omni had all of that content before: then each change reverts somebody else's.
func (r *revertWatch) wrote(changes []plan.Change, content string, applied bool, now time.Time) (plan.Change, bool) {
	if r.content != content {
		r.content, r.reverts = content, map[string][]time.Time{}
	}

	var (
		worst plan.Change
		found bool
	)

	counted := map[string]bool{}

	for _, change := range changes {
		key := strings.Join([]string{string(change.Action), change.Type, change.ID}, "|")

		// In a rollout one write of a cluster is up to three changes.
		if counted[key] {
			continue
		}

		counted[key] = true

		times, made := r.reverts[key]
		if made || applied {
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

// intentOf returns the intent of a run.
func intentOf(s *scope) intent {
	cluster := s.cluster
	read := intent{
		deleting: !cluster.DeletionTimestamp.IsZero(), asked: loop.Requests(cluster),
	}

	// A deletion is a new generation by itself, the other documents may go before the cluster does, and a user who sets
	// orphan asks for nothing in Omni.
	if read.deleting {
		return read
	}

	read.documents = generationsOf(s)

	return read
}

// generationsOf returns the generations of the object and its documents.
func generationsOf(s *scope) map[types.UID]int64 {
	found := map[types.UID]int64{s.cluster.UID: s.cluster.Generation}
	for document := range s.input.All() {
		found[document.GetUID()] = document.GetGeneration()
	}

	return found
}

// describeSecondWriter returns the message about a second writer: what was found, and what to do.
func describeSecondWriter(s *scope, change plan.Change, now time.Time) string {
	return fmt.Sprintf("%s %q in Omni had to be changed back %d times within a minute, last at %s, although nobody changed the documents of this object: "+
		"something else writes it, too. Since then this object writes and destroys nothing. Look for a second hub with the same objects "+
		"(a copy of this one's etcd has the same ID: give it another --hub-id), or for another program that changes this cluster in Omni. "+
		"When only one is left, go on: kubectl annotate omnicluster %s -n %s --overwrite %s=$(date +%%s)",
		omni.KindOf(change.Type), change.ID, revertLimit, words.Time(now), s.cluster.Name, s.cluster.Namespace, v1alpha1.AnnotationReconcileRequestedAt)
}

// secondWriter returns the message about the cluster's second writer; empty if none is known.
func (r *reconciler) secondWriter(s *scope) string {
	watch := &r.processStates.of(s.cluster).reverts
	if watch.content == "" && watch.found == "" { // nothing was ever written
		return ""
	}

	watch.observe(intentOf(s), s.plan != nil && s.plan.Removes())

	return watch.found
}

// restoreSecondWriter takes over the second writer that an earlier process found, unless somebody has asked to go on since. What
// was edited while no process ran does not end that hold: nothing says what it was before.
func (r *reconciler) restoreSecondWriter(cluster *v1alpha1.OmniCluster) {
	if state := r.processStates.of(cluster); !state.restored {
		state.restored = true

		if cluster.Status.LastHandledReconcileAt == loop.RequestedAt(cluster) {
			state.reverts = revertWatch{
				intent: intent{asked: loop.Requests(cluster), deleting: !cluster.DeletionTimestamp.IsZero()}, found: cluster.Status.SecondWriter,
			}
		}
	}
}

// noteWrites records the changes that Omni took in this run, and returns the message about the second writer that they
// show; empty if there is none.
func (r *reconciler) noteWrites(s *scope, changes []plan.Change) string {
	if len(changes) == 0 {
		return ""
	}

	watch, now := &r.processStates.of(s.cluster).reverts, r.options.Now()
	watch.observe(intentOf(s), s.plan.Removes())

	content := s.rendered.hash
	if change, found := watch.wrote(changes, content, s.cluster.Status.TemplateHash == content, now); found {
		watch.found = describeSecondWriter(s, change, now)
	}

	return watch.found
}
