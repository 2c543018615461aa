package omnihelmrelease

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// actionCorrect applies objects again that differ from the deployed release.
const actionCorrect helm.Action = "correct"

// job is one action on one release, running or ended.
type job struct {
	action      helm.Action
	attempt     string // digest of everything that the action was begun with
	source      string // of the chart; see sourceKey
	kubeconfig  string // a digest of the one that it uses
	before      int    // failures of the attempt before this action
	failedInRow int    // actions of the attempt in a row that ended with an error, this one included
	begun       time.Time
	changing    bool      // it has changed something, or is about to
	firstBegun  time.Time // when the first of them was begun
	ended       time.Time // zero while it runs
	err         error

	cancel context.CancelFunc
}

// running reports whether the action has not ended yet.
func (j job) running() bool { return !j.begun.IsZero() && j.ended.IsZero() }

// failed reports whether the action has ended with an error.
func (j job) failed() bool { return !j.ended.IsZero() && j.err != nil }

// pauses reports whether an action that failed waits before it is tried again. One that was interrupted once begins again
// at once. If it happens twice in a row, something interrupts it each time.
func (j job) pauses() bool { return j.failed() && (j.failedInRow > 1 || !interrupted(j.err)) }

// failures returns the failures of the attempt after the action. An action that the cluster or the chart refused
// counts; one that failed because of a stop, an unreachable cluster, a repository, or a controller that cannot render
// does not.
func (j job) failures() int {
	puts := j.action == helm.ActionInstall || j.action == helm.ActionUpgrade
	if j.err == nil && puts {
		return 0
	}

	var failure *helm.Error
	if (puts || j.action == helm.ActionRollback) && errors.As(j.err, &failure) {
		switch failure.Reason {
		case helm.ReasonInterrupted, helm.ReasonUnreachable, helm.ReasonUnavailable:
		default:
			return j.before + 1
		}
	}

	return j.before
}

// releaseKey names a release, with its cluster, for the limit of actions in one cluster.
type releaseKey struct {
	types.NamespacedName

	uid     types.UID
	cluster string
}

// waiter names a release among those that wait for a slot of its cluster.
func (k releaseKey) waiter() string { return k.cluster + " " + string(k.uid) }
