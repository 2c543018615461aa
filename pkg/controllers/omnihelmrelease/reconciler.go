// Package omnihelmrelease is the controller of OmniHelmRelease: it decides when a Helm release in a workload cluster is
// checked, which action comes next, and what the status says. Package helm carries the actions out.
//
// The files follow the phases of a run: chart and values (inputs), the owner of the release (ownership), the desired release, what
// it depends on and the next action (release), the live objects (drift), a deletion (delete), the status (status), errors and retries
// (failure). The phases themselves, connect and test are in reconciler.
//
// Actions take long, so none runs on a worker: action.go prepares one and checks that it is still wanted right before the first
// change, and runner.go runs it outside of the reconciler, a limited number at once, and triggers the object when it has ended.
// Calls that may take long are made in the same way, by package asynccache.
package omnihelmrelease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// kindName is the kind's name in metrics.
const kindName = "OmniHelmRelease"

const (
	// callTimeout bounds one request to a workload cluster.
	callTimeout = 10 * time.Second
	// answerTimeout is how long a worker waits for calls that are usually quick; after that, the result triggers the
	// object.
	answerTimeout = 2 * time.Second
	// questionTimeout bounds one call to a repository or a workload cluster.
	questionTimeout = 2 * time.Minute
	// actionsPerWorker is how many actions may run for each worker, because they mostly wait. One cluster has as many
	// as there are workers, one namespace as many as are left for the others. The same limits apply to comparisons, and to
	// calls of repositories, by host.
	actionsPerWorker = 8
	// readers is how many actions and calls read values at the same time, beside the workers: that takes several times
	// what the values take.
	readers = 2
)

// engine works on one release in one cluster. *helm.Client implements it.
type engine interface {
	Observe(ctx context.Context) (helm.Observed, error)
	Details(ctx context.Context, revision int) (helm.Details, error)
	Run(ctx context.Context, request helm.Request) error
	Drift(ctx context.Context, revision int, ignores []drift.Ignore) ([]drift.Difference, error)
	Correct(ctx context.Context, revision int, ignores []drift.Ignore, begin func() error) ([]drift.Difference, error)
	Mark(ctx context.Context, mark helm.Mark) error
}

// fetcher finds charts. *charts.Fetcher implements it.
type fetcher interface {
	Resolve(ctx context.Context, source charts.Source) (*charts.Resolved, error)
	Open(ctx context.Context, source charts.Source, resolved *charts.Resolved) (*charts.Archive, error)
	Keeps(source charts.Source, resolved *charts.Resolved) bool
}

// access connects to workload clusters. *clusteraccess.Access implements it.
type access interface {
	Open(ctx context.Context, requester clusteraccess.Requester) (*clusteraccess.Opened, loop.Outcome, error)
	PlanCleanup(ctx context.Context, requester clusteraccess.Requester, now time.Time) (clusteraccess.Cleanup, loop.Outcome, error)
	Destroying(ctx context.Context, requester clusteraccess.Requester) (bool, error)
	GiveUp(object client.Object, problem string, tried, now time.Time) (clusteraccess.Action, string)
}

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options
	access  access
	charts  fetcher
	engine  func(opened *clusteraccess.Opened, tenant, name, namespace string) engine

	process string // names this process on what it makes

	runner  *runner
	reading *limiter.Limiter[string] // of values when a turn has come, by namespace
	found   *asynccache.Cache[types.NamespacedName, string, *charts.Resolved]
	drift   *asynccache.Cache[types.NamespacedName, string, []drift.Difference]
	wake    *trigger.Trigger[types.NamespacedName]
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, log logr.Logger, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	r := &reconciler{
		client: cached, live: live, events: recorder, options: options, process: strings.ToLower(rand.Text()),
		wake: trigger.New[types.NamespacedName](trigger.Pacing{}),
		engine: func(opened *clusteraccess.Opened, tenant, name, namespace string) engine {
			cluster := opened.Cluster

			return helm.New(helm.Target{
				Config: cluster.RESTConfig(), Scrub: cluster.Scrub, Name: name, Namespace: namespace,
				Renderers: options.Renderers, Tenant: tenant,
			}, log, 0)
		},
	}
	workers := int64(max(1, options.Concurrency))
	inClusters := limiter.Limits[string]{PerKey: workers, Total: actionsPerWorker * workers, Tenant: namespaceOf}
	atHosts := inClusters
	atHosts.Resource = hostOf // which many namespaces may ask
	r.runner = newRunner(inClusters, options.Now, r.wake.Fire)
	r.reading = limiter.New(limiter.Limits[string]{PerKey: 1, Total: readers})
	r.found = newCache[*charts.Resolved](r, atHosts)
	r.drift = newCache[[]drift.Difference](r, inClusters)

	// An interface that holds a nil pointer would not be nil.
	if options.Access != nil {
		r.access = options.Access
	}

	if options.Charts != nil {
		r.charts = options.Charts
	}

	return r
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniHelmRelease, *scope] {
	return loop.Kind[*v1alpha1.OmniHelmRelease, *scope]{
		New:       func() *v1alpha1.OmniHelmRelease { return &v1alpha1.OmniHelmRelease{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  interval,
		Suspended: func(release *v1alpha1.OmniHelmRelease) bool { return release.Spec.Suspend },
		Prepare:   r.prepare,
		NewScope: func(release *v1alpha1.OmniHelmRelease) *scope {
			return &scope{release: release, last: r.runner.job(release.UID)}
		},
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionChartFetched, Run: r.findChart},
			{Condition: v1alpha1.ConditionValuesResolved, Run: r.resolveValues},
			{Condition: v1alpha1.ConditionConnected, Run: r.connect},
			{Condition: v1alpha1.ConditionReleased, Run: r.release},
			{Condition: v1alpha1.ConditionTested, Run: r.test},
			{Condition: v1alpha1.ConditionDrifted, Abnormal: true, Run: r.compare},
		},
		Delete: []loop.Phase[*scope]{{Run: r.delete}},
		Report: r.report,
		Close: func(s *scope) {
			s.opened.Done()

			if !s.waits {
				r.runner.exit(keyOf(s.release))
			}
		},
		Reported: func(release *v1alpha1.OmniHelmRelease) {
			// The phases of a suspended object do not run.
			if release.Spec.Suspend && release.DeletionTimestamp.IsZero() {
				r.runner.exit(keyOf(release))
			}

			name := client.ObjectKeyFromObject(release)
			r.options.Objects.SetInfo(objectOf(name), release.Status.Conditions, release.Spec.ClusterRef.Name)
			r.options.Objects.SetDrift(name, release.Status.Conditions)
		},
		Gone: r.forget,
	}
}

// prepare notes another hub that has the cluster, and then ends what is under way there, in order, also for a suspended release: that
// hub counts a revision without a result as left behind when a process that stops would have ended it (helm.Decide).
func (r *reconciler) prepare(ctx context.Context, release *v1alpha1.OmniHelmRelease) {
	release.Status.OtherHub = clusteraccess.OtherHub(ctx, r.client, r.options.HubID, clusteraccess.RequesterOf(release, nil))

	if release.Status.OtherHub != "" {
		r.runner.interrupt(release.UID)
	}
}

// newCache makes a cache of results.
func newCache[T any](r *reconciler, limits limiter.Limits[string]) *asynccache.Cache[types.NamespacedName, string, T] {
	return asynccache.New(asynccache.Options[types.NamespacedName, string, T]{
		Limiter: limiter.New(limits), AnswerTimeout: answerTimeout, QuestionTimeout: questionTimeout, Now: r.options.Now, Wake: r.wake.Fire,
		Keep: func(question asynccache.Question[string], answer asynccache.Answer[T]) time.Duration {
			return validFor(question.Fresh, answer.Err, answer.Failures)
		},
	})
}

func (r *reconciler) forget(name types.NamespacedName) {
	r.options.Objects.Forget(objectOf(name))
	r.runner.forget(name)
	r.found.Forget(name)
	r.drift.Forget(name)
}

func objectOf(name types.NamespacedName) metrics.Object {
	return metrics.Object{Kind: kindName, NamespacedName: name}
}

func interval(release *v1alpha1.OmniHelmRelease) time.Duration {
	return release.Spec.Interval.OrDefault(v1alpha1.DefaultHelmInterval.OrDefault(0))
}

// fresh returns how long a result is valid: every run at the interval asks again, and no other run does.
func fresh(release *v1alpha1.OmniHelmRelease) time.Duration { return interval(release) / 2 }

// validFor returns how long a result is valid that may be an error. A failure of a chart that needs a person is tried
// again at the interval, others after a pause that grows.
func validFor(fresh time.Duration, err error, failures int) time.Duration {
	var failure *charts.Error
	if err == nil || errors.As(err, &failure) && !failure.Reason.Temporary() {
		return fresh
	}

	return min(fresh, retryPause(failures))
}

// connect connects to the workload cluster.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	opened, outcome, err := r.access.Open(ctx, clusteraccess.RequesterOf(s.release, r.wake))
	s.opened = opened

	s.waits = s.waits || outcome.Postpones()

	// Without access, and with another kubeconfig, nothing is begun any more. What passes by itself is waited for.
	refused := !outcome.Continues() && outcome.After() == 0 || outcome.Continues() && opened.Kubeconfig != s.last.kubeconfig
	if found := r.runner.job(s.release.UID); err == nil && refused && !found.changing {
		r.runner.interrupt(s.release.UID)
	}

	if err == nil && outcome.Reason() == v1alpha1.ReasonOwnedByOtherHub && s.last.running() {
		outcome = loop.Stall(outcome.Reason(), "%s of release %s, which was begun at %s, is being ended; beside that %s",
			s.last.action, fullName(s.release), words.Time(s.last.begun), outcome.Message())
	}

	return outcome, err
}

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

// test runs the chart's tests, once for each revision.
func (r *reconciler) test(_ context.Context, s *scope) (loop.Outcome, error) {
	if !s.release.Spec.Test.Enable {
		return loop.Skip(v1alpha1.ReasonDisabled, "spec.test.enable is not set"), nil
	}

	if s.decision.Action == helm.ActionTest {
		if testsAreVain(s) {
			return testsFailed(s, failureReason(s.last.err), fmt.Sprintf("the result of the tests cannot be noted: %s. They run again with the next "+
				"revision, or when the annotation %s gets a new value", s.last.err, v1alpha1.AnnotationReconcileRequestedAt)), nil
		}

		if at := notBefore(s.release, s.last, s.decision, r.options.Now()); at.After(r.options.Now()) {
			return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "%s", s.last.err), nil
		}

		return r.begin(s, helm.ActionTest, r.action(s)), nil
	}

	if s.latest().Tested == helm.TestsPassed {
		return loop.Continue(v1alpha1.ReasonTestsPassed, "%s; its tests passed", deployed(s)), nil
	}

	said := "a test failed"
	if s.last.action == helm.ActionTest && s.last.err != nil {
		said = s.last.err.Error()
	}

	return testsFailed(s, v1alpha1.ReasonTestsFailed, said+". The tests run again with the next revision"), nil
}

// testsFailed returns the outcome for failed tests, as far as they count.
func testsFailed(s *scope, reason, said string) loop.Outcome {
	if s.release.Spec.Test.IgnoreFailures {
		return loop.Note(reason, "%s; %s (spec.test.ignoreFailures is set)", deployed(s), said)
	}

	return loop.Stall(reason, "%s; %s", deployed(s), said)
}

// testsAreVain reports whether the tests were run as often as an action is tried, and no result could be recorded. A
// cluster that cannot be reached is waited for.
func testsAreVain(s *scope) bool {
	return s.last.action == helm.ActionTest && s.last.attempt == s.want.Attempt && s.last.failed() && s.last.failedInRow > s.want.Retries &&
		!interrupted(s.last.err) && failureReason(s.last.err) != v1alpha1.ReasonClusterUnreachable
}
