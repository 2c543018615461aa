package omnicluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

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

	for i := range s.input.Workers {
		if o := &s.input.Workers[i]; listsNone(o) {
			empty = append(empty, fmt.Sprintf("OmniWorkers %q", o.Name))
		}
	}

	if len(empty) > 0 {
		text += "; no machine is listed in " + consent.Names(empty)
	}

	return text
}
