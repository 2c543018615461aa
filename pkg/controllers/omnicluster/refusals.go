package omnicluster

import (
	"slices"
	"strings"
	"time"

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

// refused is what Omni refused a moment ago of what was asked for.
type refused struct {
	asked    string
	refusals []refusal
}

// knownRefusals is what need not be tried again now for what a run asks for.
func (r *reconciler) knownRefusals(s *scope) knownRefusals {
	known := knownRefusals{now: r.options.Now()}

	if before := r.refused.of(client.ObjectKeyFromObject(s.cluster)); before.asked == askedFor(s) {
		for _, one := range before.refusals {
			if known.now.Sub(one.at) < refusalPause {
				known.refusals = append(known.refusals, one)
			}
		}
	}

	return known
}

// keepRefusals takes over what a run found.
func (r *reconciler) keepRefusals(s *scope, refusals []refusal) {
	name := client.ObjectKeyFromObject(s.cluster)
	if len(refusals) == 0 {
		r.refused.forget(name)
	} else {
		r.refused.keep(name, refused{asked: askedFor(s), refusals: refusals})
	}
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
