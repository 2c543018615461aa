package omniconnection

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
)

const (
	// checkPause is how long the answer to a check counts.
	checkPause = 30 * time.Second
	// checkTimeout ends a check that does not end by itself, as it does after session.CheckTimeout.
	checkTimeout = 2 * session.CheckTimeout
)

// errUndecided says that Omni has not answered a check yet.
var errUndecided = errors.New("Omni has not answered yet")

// check is what the answer to a check depends on.
type check struct {
	session   *session.Session
	requested string // the on-demand request that it answers
	refusals  uint64 // of the session, before it was asked
}

// checks keeps the last check of each connection.
type checks = asynccache.Cache[types.UID, check, struct{}]

func newChecks(options Options) *checks {
	return asynccache.New(asynccache.Options[types.UID, check, struct{}]{
		AnswerTimeout: reachTimeout, QuestionTimeout: checkTimeout, Now: options.Now,
		Keep: func(asynccache.Question[check], asynccache.Answer[struct{}]) time.Duration { return checkPause },
		Wake: func(uid types.UID) {
			if options.HealthChanged != nil {
				options.HealthChanged.Fire(string(uid))
			}
		},
	})
}

// check asks Omni whether the session still works, unless it did so a moment
// ago: a fleet of clusters that come and go wakes its connection often. A
// request by annotation is always answered with a new check, and what was
// answered before Omni refused the key to somebody else does not count.
//
// It waits no longer than ctx, and is errUndecided then: an Omni that hangs must
// not keep the workers that other connections need. The question goes on, and
// its answer wakes the connection.
func (r *reconciler) check(ctx context.Context, connection *v1alpha1.OmniConnection, lease *session.Lease) error {
	session := lease.Session
	if session.Client() == nil {
		return nil
	}

	return r.ask(ctx, connection.UID, check{
		session:   session,
		requested: connection.Annotations[v1alpha1.AnnotationReconcileRequestedAt] + " " + connection.Annotations[v1alpha1.AnnotationFluxRequestedAt],
		refusals:  session.Client().Refusals(),
	}, session.Client().Check)
}

// ask asks, or returns the answer to the same check. A failure counts for those who
// asked for it only, so that the next run asks again.
func (r *reconciler) ask(ctx context.Context, uid types.UID, wanted check, do func(context.Context) error) error {
	answer, ok := r.checks.Ask(ctx, uid, asynccache.Question[check]{Key: wanted, Group: string(uid)}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, do(ctx)
	})
	if !ok {
		return errUndecided
	}

	if answer.Err != nil {
		r.checks.Forget(uid)
	}

	return answer.Err
}
