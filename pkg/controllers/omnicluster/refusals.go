package omnicluster

import (
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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

// keepRefusals stores the refusals of a run.
func (r *reconciler) keepRefusals(s *scope, refusals []refusal) {
	r.processStates.of(s.cluster).refusals = keptRefusals{asked: askedFor(s), refusals: refusals}
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
