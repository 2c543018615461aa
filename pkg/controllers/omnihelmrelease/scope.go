package omnihelmrelease

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// scope is what the phases of one run share. Fields are empty until their phase
// has run.
type scope struct {
	release *v1alpha1.OmniHelmRelease
	last    job // as it was when the run began

	source   charts.Source // of the chart
	key      string        // of source
	resolved *charts.Resolved
	away     *loop.Outcome // of what needs the archive while the repository is away; nil: it is not
	values   values.Values
	opened   *clusteraccess.Opened
	engine   engine
	observed *helm.Observed // only if the release is this object's, nobody's, or about to be taken over
	want     helm.Wanted
	decision helm.Decision

	done  bool // the release is as wanted
	waits bool // it keeps its place among those that wait for a slot
	seen  bool // by a deletion: there is one of the name
}

// latest returns the newest revision, or nil.
func (s *scope) latest() *helm.Revision {
	if s.observed == nil {
		return nil
	}

	return s.observed.Latest()
}

// told reports whether the status has the last result of a phase for the current generation, and the result of the last
// action. A call that takes long then leaves it as it is: a condition that is checked again and again must not change
// back and forth.
func (s *scope) told(condition string) bool {
	status := &s.release.Status
	if status.ObservedGeneration != s.release.Generation {
		return false
	}

	if !s.last.ended.IsZero() && (status.LastActionTime == nil || status.LastActionTime.Time.Before(words.StoredTime(s.last.ended).Time)) {
		return false
	}

	last := apimeta.FindStatusCondition(status.Conditions, condition)

	return last != nil && last.ObservedGeneration == s.release.Generation && last.Reason != v1alpha1.ReasonBlocked
}

// asking returns the outcome of a phase while its call has no result yet.
func (s *scope) asking(condition, format string, args ...any) loop.Outcome {
	s.waits = true

	if s.told(condition) {
		return loop.Postpone(questionTimeout, v1alpha1.ReasonProgressing, format, args...)
	}

	return loop.Wait(0, v1alpha1.ReasonProgressing, format, args...)
}
