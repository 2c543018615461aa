package omnihelmrelease

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// begin begins an action outside of the reconciler.
func (r *reconciler) begin(s *scope, action helm.Action, run func(context.Context) error) {
	where := releaseKey{
		NamespacedName: client.ObjectKeyFromObject(s.release), uid: s.release.UID,
		cluster: clusterOf(s.release),
	}
	release := named(s.release)

	added := job{
		action: action, attempt: s.want.Attempt, source: s.key, inputs: inputs(s.want.Attempt, s.opened), generation: s.release.Generation,
		before: s.decision.Failures,
	}

	r.runner.add(where, added, func(ctx context.Context) error {
		err := r.runner.asWithdrawn(where.uid, recoverPanic(func() error { return run(ctx) }))
		r.tell(release, action, err)

		return err
	})
}

// clusterOf returns the key of the workload cluster, for the limits on what runs there at once.
func clusterOf(release *v1alpha1.OmniHelmRelease) string {
	return release.Namespace + "/" + release.Spec.ClusterRef.Name
}

// namespaceOf returns the namespace in a key of clusterOf or askedBy: clusters and hosts that hang in one must not take the
// slots of all.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")

	return namespace
}

// named returns what events say of a release: its spec and its status can be large, and the action may wait for hours.
func named(release *v1alpha1.OmniHelmRelease) *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{
		TypeMeta:   release.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: release.Name, UID: release.UID, ResourceVersion: release.ResourceVersion},
		Spec:       v1alpha1.OmniHelmReleaseSpec{ReleaseName: release.Spec.ReleaseName, Namespace: release.Spec.Namespace},
	}
}

// action returns the decided action, ready to run. What it needs beside the decision it reads when it has a slot: each
// action opens a chart, and only if it needs one. If that, or the wait for a slot, took long, somebody else may have
// changed the release, so the action reads it again, too.
func (r *reconciler) action(s *scope) func(context.Context) error {
	request := helm.Request{
		Decision: s.decision, Wanted: s.want, Settings: settings(s.release), Observed: s.observed, Note: r.note(named(s.release)),
	}
	from, resolved, engine, decided := basisOf(s), s.resolved, s.engine, r.options.Now()
	request.Begin = func() error { return r.runner.changes(from.uid) }

	return func(ctx context.Context) error {
		if err := r.fill(ctx, &request, from, resolved); err != nil {
			return err
		}

		if ctx.Err() != nil {
			return &helm.Error{Reason: helm.ReasonInterrupted, Message: "the action was stopped before it was begun"}
		}

		if err := r.lookAgain(ctx, engine, *request.Observed, decided); err != nil {
			return err
		}

		return engine.Run(ctx, request)
	}
}

// lookAgain returns an error if the wait for a slot, or for a chart, took long, and the release has changed since the
// decision.
func (r *reconciler) lookAgain(ctx context.Context, engine engine, before helm.Observed, decided time.Time) error {
	if r.options.Now().Sub(decided) <= callTimeout {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	now, err := engine.Observe(ctx)
	if err != nil {
		return err
	}

	if !reflect.DeepEqual(now.Latest(), before.Latest()) {
		return &helm.Error{Reason: helm.ReasonInterrupted, Message: "the release was changed while the action waited for its turn; what to do is decided anew"}
	}

	return nil
}

// recoverPanic converts a panic to an error: a failure of one release must not end the controller with all others. The
// error does not have the text of the panic, because it may contain anything.
func recoverPanic(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &helm.Error{Reason: helm.ReasonFailed, Message: fmt.Sprintf("a fault of the controller stopped this (panic of type %T)", cause)}
		}
	}()

	return do()
}
