package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// clockTolerance is how far the clocks of two processes may differ while policies are in force: each by half of it from the
// API server's.
const clockTolerance = time.Minute

// NotAfter reads a time of a status as no later than now. A later one was written while the clock was ahead: what is counted
// from it would not end before the clock gets there.
func NotAfter(t *metav1.Time, now time.Time) *metav1.Time {
	if t == nil || !t.After(now) {
		return t
	}

	return seconds(now)
}

// isProved reports whether a version was proved by now. One that was proved later was proved while the clock was ahead: it
// may not have run for the soak time.
func isProved(one v1alpha1.QualifiedVersion, now time.Time) bool {
	return !one.Since.After(now.Add(clockTolerance))
}
