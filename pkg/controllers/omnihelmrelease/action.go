package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
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

// What waits for its turn may wait for hours: a question about a chart, a comparison, and an action for its chart, a worker or memory.
// Hundreds may wait, so they do not hold what they were decided from: they read it again when their turn comes, and end if it is
// not the same.

// basis is what something that waits for its turn was decided from: the names and the digest of what is read again.
type basis struct {
	name       types.NamespacedName
	uid        types.UID
	generation int64
	values     string
}

func basisOf(s *scope) basis {
	return basis{
		name: client.ObjectKeyFromObject(s.release), uid: s.release.UID, generation: s.release.Generation, values: s.values.Digest(),
	}
}

// errWithdrawn is the error of what is not what was decided from any more.
var errWithdrawn = &helm.Error{
	Reason: helm.ReasonInterrupted, Message: "what is wanted was changed while this waited for its turn; what to do is decided anew",
}

// mayBegin returns what is asked right before an action changes the first thing, and maybe again later. An edit counts until then: it
// may suspend the release. So does what somebody else makes of the release. What has begun goes on.
func (r *reconciler) mayBegin(s *scope, action helm.Action) func(context.Context) error {
	from, engine, latest, decided := basisOf(s), s.engine, s.latest(), r.options.Now()

	return func(ctx context.Context) error {
		if r.runner.job(from.uid).changing {
			return nil
		}

		if err := r.unchanged(ctx, from, action); err != nil {
			return err
		}

		if err := r.lookAgain(ctx, engine, latest, decided); err != nil {
			return err
		}

		r.runner.changes(from.uid)

		return nil
	}
}

// unchanged returns an error if the object was edited or its cluster suspended since an action was decided, or the action was
// stopped. An uninstall goes on if the object is gone.
func (r *reconciler) unchanged(ctx context.Context, from basis, action helm.Action) error {
	if ctx.Err() != nil {
		return &helm.Error{Reason: helm.ReasonInterrupted, Message: "the action was stopped before it was begun"}
	}

	release, err := r.releaseAgain(ctx, from)

	switch {
	case err != nil && action != helm.ActionUninstall:
		return notAgain(err)
	case err == nil && release.Generation != from.generation:
		return errWithdrawn
	case action == helm.ActionUninstall, action == helm.ActionTest:
		return nil
	default:
		return r.notSuspended(ctx, release)
	}
}

// notSuspended returns an error if the release's cluster is suspended. It asks the API server: who suspends a cluster and edits its
// release in one commit must not depend on which of the two the cache sees first.
func (r *reconciler) notSuspended(ctx context.Context, release *v1alpha1.OmniHelmRelease) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	cluster := &v1alpha1.OmniCluster{}

	err := r.live.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}, cluster)

	switch {
	case apierrors.IsNotFound(err): // the next run says so
		return nil
	case err != nil:
		return notAgain(fmt.Errorf("read OmniCluster %q: %w", release.Spec.ClusterRef.Name, err))
	case cluster.Spec.Suspend:
		return errWithdrawn
	default:
		return nil
	}
}

// releaseAgain reads the object; errWithdrawn if it is gone, or another one.
func (r *reconciler) releaseAgain(ctx context.Context, from basis) (*v1alpha1.OmniHelmRelease, error) {
	release := &v1alpha1.OmniHelmRelease{}

	err := r.client.Get(ctx, from.name, release)
	if apierrors.IsNotFound(err) || err == nil && release.UID != from.uid {
		return nil, errWithdrawn
	}

	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}

	return release, nil
}

// sourceAgain reads where the chart is, and returns the key of that. Credentials, certificates and keys that were replaced
// meanwhile are those that count.
func (r *reconciler) sourceAgain(ctx context.Context, from basis) (source charts.Source, key string, err error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()

	release, err := r.releaseAgain(ctx, from)
	if err != nil {
		return charts.Source{}, "", err
	}

	source, err = r.source(ctx, release)

	return source, sourceKey(source, release), err
}

// valuesAgain reads the values; errWithdrawn if they are not the same. The caller has a place among the readers.
func (r *reconciler) valuesAgain(ctx context.Context, from basis) (values.Values, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()

	release, err := r.releaseAgain(ctx, from)
	if err != nil {
		return values.Values{}, err
	}

	merged, err := r.values(ctx, release)
	if err == nil && merged.Digest() != from.values {
		err = errWithdrawn
	}

	return merged, err
}

// withValues calls a function with the values that something was decided from, for what was learned when its turn had
// come. The time of that may be used up.
func (r *reconciler) withValues(from basis, use func(values.Values)) error {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()

	done, err := r.reading.Acquire(ctx, from.name.Namespace, 1)
	if err != nil {
		return err
	}
	defer done()

	merged, err := r.valuesAgain(ctx, from)
	if err == nil {
		use(merged)
	}

	return err
}

// fill reads what an action needs beside the decision.
func (r *reconciler) fill(ctx context.Context, request *helm.Request, from basis, resolved *charts.Resolved) error {
	if err := r.unchanged(ctx, from, request.Decision.Action); err != nil {
		return err
	}

	if request.Decision.Action == helm.ActionInstall || request.Decision.Action == helm.ActionUpgrade {
		source, _, err := r.sourceAgain(ctx, from)
		if err != nil {
			return notAgain(err)
		}

		archive, err := r.charts.Open(ctx, source, resolved)
		if err != nil {
			return err
		}

		request.Chart = archive
	}

	done, err := r.reading.Acquire(ctx, from.name.Namespace, 1)
	if err != nil {
		return notAgain(err)
	}
	defer done()

	// A server repeats what it refuses, also of a hook: values of Secrets are removed from messages. An uninstall removes
	// them as far as the Secrets still exist.
	request.Values, err = r.valuesAgain(ctx, from)
	if err != nil && request.Decision.Action != helm.ActionUninstall {
		return notAgain(err)
	}

	return nil
}

// notAgain returns the error of an action that could not read again what it was decided from: the next run finds out what
// that means.
func notAgain(err error) error {
	if errors.Is(err, errWithdrawn) {
		return err
	}

	return &helm.Error{Reason: helm.ReasonInterrupted, Message: "read again what is needed: " + err.Error()}
}

// actionNames are the actions that end, and their names in events.
var actionNames = map[helm.Action]string{ //nolint:gochecknoglobals // a table
	helm.ActionInstall: "Install", helm.ActionUpgrade: "Upgrade", helm.ActionRollback: "Rollback", helm.ActionUninstall: "Uninstall",
	helm.ActionTest: "Test", helm.ActionUnlock: "Unlock", actionCorrect: "Correct",
}

// Actions returns the actions that are counted.
func Actions() []string {
	var actions []string

	for action := range actionNames {
		actions = append(actions, string(action))
	}

	return actions
}

// tell counts an action that has ended, and sends an event.
func (r *reconciler) tell(release *v1alpha1.OmniHelmRelease, action helm.Action, err error) {
	switch {
	case interrupted(err):
		r.options.Actions.Ended(string(action), metrics.HelmInterrupted)

		return // it is begun again, or a deletion follows
	case err != nil:
		r.options.Actions.Ended(string(action), metrics.HelmFailed)
	default:
		r.options.Actions.Ended(string(action), metrics.HelmSucceeded)
	}

	name := actionNames[action]

	if err == nil {
		r.events.Eventf(release, nil, corev1.EventTypeNormal, name+"Succeeded", name, "%s of release %s succeeded", action, fullName(release))

		return
	}

	r.events.Eventf(release, nil, corev1.EventTypeWarning, name+"Failed", name, "%s of release %s: %v", action, fullName(release), err)
}

// note returns a function that sends events about what an action did besides its result.
func (r *reconciler) note(release *v1alpha1.OmniHelmRelease) func(helm.Note, string) {
	return func(note helm.Note, text string) {
		r.events.Eventf(release, nil, corev1.EventTypeNormal, string(note), "Helm", "release %s: %s", fullName(release), text)
	}
}
