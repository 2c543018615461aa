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
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// begin begins an action outside of the reconciler, if there is a slot for it.
func (r *reconciler) begin(s *scope, action helm.Action, run func(context.Context) error) loop.Outcome {
	release, where := named(s.release), keyOf(s.release)
	added := job{action: action, attempt: s.want.Attempt, source: s.key, kubeconfig: s.opened.Kubeconfig, before: s.decision.Failures}

	begun := r.runner.begin(where, added, func(ctx context.Context) error {
		err := recoverPanic(func() error { return run(ctx) })
		r.tell(release, action, err)

		return err
	})
	if !begun {
		s.waits = true

		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s of release %s waits for its turn: as many actions are at work as may be in its cluster, "+
			"for its namespace, or in all", action, fullName(s.release))
	}

	return underWay(s.release, r.runner.job(s.release.UID))
}

// keyOf returns the key of a release for the limits of actions.
func keyOf(release *v1alpha1.OmniHelmRelease) releaseKey {
	return releaseKey{NamespacedName: client.ObjectKeyFromObject(release), uid: release.UID, cluster: clusterOf(release)}
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

// action returns the decided action, ready to run. What it needs beside the decision it reads then: each action opens a chart, and
// only if it needs one.
func (r *reconciler) action(s *scope) func(context.Context) error {
	request := helm.Request{
		Decision: s.decision, Wanted: s.want, Settings: settings(s.release), Observed: s.observed, Note: r.note(named(s.release)),
	}
	from, resolved, engine, mayBegin := basisOf(s), s.resolved, s.engine, r.mayBegin(s, s.decision.Action)

	return func(ctx context.Context) error {
		if err := r.fill(ctx, &request, from, resolved); err != nil {
			return err
		}

		request.Begin = func() error { return mayBegin(ctx) }

		return engine.Run(ctx, request)
	}
}

// lookAgain returns an error if an action waited long, for a chart, a worker or memory, and the latest revision is another one than
// when it was decided.
func (r *reconciler) lookAgain(ctx context.Context, engine engine, before *helm.Revision, decided time.Time) error {
	if r.options.Now().Sub(decided) <= callTimeout {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	now, err := engine.Observe(ctx)
	if err != nil {
		return err
	}

	if !reflect.DeepEqual(now.Latest(), before) {
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
