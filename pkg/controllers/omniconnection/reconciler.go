// Package omniconnection is the controller of OmniConnection: it reads the service account key, opens the session with
// Omni that the clusters of the connection share, and reports why if it cannot.
//
// While an OmniCluster refers to the connection, the Secret with the key carries a finalizer, and the connection itself
// is not removed.
package omniconnection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// kindName is the kind's name in metrics.
const kindName = "OmniConnection"

// interval is how often a connection is reconciled without a trigger.
const interval = 5 * time.Minute

const (
	// firstContentsTime is how long a run waits for the local copy of Omni's
	// resources; the first contents of an idle Omni take milliseconds.
	firstContentsTime = 3 * time.Second
	// firstContentsPoll is how often the run checks the copy meanwhile.
	firstContentsPoll = 20 * time.Millisecond
	// reachTimeout is how long a run waits for Omni before it gives its worker back. The call goes on, and its end
	// triggers the connection.
	reachTimeout = 2 * time.Second
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options

	mu     sync.Mutex
	uids   map[types.NamespacedName]types.UID // of the connections that were seen
	warned map[types.UID]time.Time            // the expiry that was warned of
	kept   map[types.UID]types.UID            // the Secret that was told to be kept
	// unrestricted are the keys without endpoints that an event has warned of.
	unrestricted map[types.UID]unrestricted
	checks       *checks

	firstLook sync.Once
	started   time.Time // when the first object was looked at
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{
		client: cached, live: live, events: recorder, options: options,
		uids: map[types.NamespacedName]types.UID{}, warned: map[types.UID]time.Time{},
		kept: map[types.UID]types.UID{}, unrestricted: map[types.UID]unrestricted{}, checks: newChecks(options),
	}
}

// scope is what the phases of one run share.
type scope struct {
	connection *v1alpha1.OmniConnection
	secretUID  types.UID            // of the Secret that the key was read from
	key        session.Key          // the zero Key until it was read
	endpoint   string               // the endpoint that was reached
	version    omni.Version         // what Omni says of itself; the zero value if that is not known
	tooOld     bool                 // Omni does not serve what is needed
	access     *v1alpha1.OmniAccess // what Omni says of the access for people; nil if it does not
	reported   *time.Time           // the expiry to report; nil if no key was read
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniConnection, *scope] {
	return loop.Kind[*v1alpha1.OmniConnection, *scope]{
		New:       func() *v1alpha1.OmniConnection { return &v1alpha1.OmniConnection{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  func(*v1alpha1.OmniConnection) time.Duration { return interval },
		Due:       r.expiresIn,
		NewScope:  r.newScope,
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionCredentialsFound, Run: r.findCredentials},
			{Condition: v1alpha1.ConditionReachable, Run: r.reach},
		},
		Delete:    []loop.Phase[*scope]{{Run: r.waitForUsers}, {Run: r.closeSession}},
		Report:    report,
		Transient: versionCondition,
		Reported:  r.measure,
		Gone:      r.gone,
	}
}

// newScope also detects that a new object has the name of one whose deletion was not seen.
func (r *reconciler) newScope(connection *v1alpha1.OmniConnection) *scope {
	r.firstLook.Do(func() { r.started = r.options.Now() })

	name := client.ObjectKeyFromObject(connection)

	r.mu.Lock()
	former := r.uids[name]
	r.uids[name] = connection.UID
	r.mu.Unlock()

	if former != "" && former != connection.UID {
		r.forget(former)
	}

	r.options.Calls.Name(string(connection.UID), name.String())

	return &scope{connection: connection}
}

// reach opens the session with Omni, or finds it open, and checks whether it still works.
func (r *reconciler) reach(ctx context.Context, s *scope) (loop.Outcome, error) {
	spec := s.connection.Spec

	waiting, stop := context.WithTimeout(ctx, reachTimeout)
	defer stop()

	lease, err := r.options.Pool.Acquire(waiting,
		session.Identity{UID: string(s.connection.UID), Owner: s.connection.Namespace, SecretUID: string(s.secretUID)},
		session.Config{Endpoint: spec.Endpoint, Key: s.key, CABundle: spec.CABundle, InsecureSkipTLSVerify: spec.InsecureSkipTLSVerify})
	if err != nil {
		var old *omni.TooOldError
		if errors.As(err, &old) {
			s.endpoint, s.version, s.tooOld = spec.Endpoint, old.Version, true
		}

		// The attempt goes on, and its end triggers the connection.
		if waiting.Err() != nil && ctx.Err() == nil {
			return loop.Postpone(session.CheckTimeout, v1alpha1.ReasonProgressing, "connecting to %s", spec.Endpoint), nil
		}

		return r.explainCall(spec.Endpoint, err), nil
	}
	defer lease.Release()

	s.endpoint, s.version = spec.Endpoint, lease.Version()

	if err := r.check(waiting, s.connection, lease); err != nil {
		if errors.Is(err, errUndecided) {
			return loop.Postpone(session.CheckTimeout, v1alpha1.ReasonProgressing, "%s is being asked", spec.Endpoint), nil
		}

		return r.unlessBrief(s.connection, lease.Health(), r.explainCall(spec.Endpoint, err)), nil
	}

	if health := firstContents(ctx, lease); !health.Synced {
		return r.unlessBrief(s.connection, health, r.unlessStarting(s.connection, health, explainHealth(spec.Endpoint, health))), nil
	}

	// The key may have ended during the call.
	if s.key.Expired(r.options.Skew.Now().Earliest(r.options.Now())) {
		return explain(omni.ClassKeyExpired, spec.Endpoint, omni.Message(omni.ErrKeyExpired)), nil
	}

	s.access = findAccess(ctx, lease.Session)

	return loop.Continue(v1alpha1.ReasonConnected, "connected to %s as service account %q", spec.Endpoint, s.key.Name()), nil
}

// expiresIn returns how long the key in the status is still valid, so that the connection is reconciled at its end. 0
// if it has no end, or has ended.
func (r *reconciler) expiresIn(connection *v1alpha1.OmniConnection) time.Duration {
	account := connection.Status.ServiceAccount
	if account == nil || account.ExpirationTime == nil {
		return 0
	}

	return max(0, account.ExpirationTime.Sub(r.options.Now()))
}

// firstContents waits a moment for a copy that is being filled for the first time, so that a restart does not show
// every connection as not ready.
func firstContents(ctx context.Context, lease *session.Lease) mirror.Health {
	ctx, cancel := context.WithTimeout(ctx, firstContentsTime)
	defer cancel()

	for {
		health := lease.Health()
		if health.Synced || health.Class != omni.ClassNotReady {
			return health
		}

		select {
		case <-ctx.Done():
			return health
		case <-time.After(firstContentsPoll):
		}
	}
}

// unlessStarting replaces the outcome in the first moments of a leader and of a session with a new key, CA or endpoint, while
// nothing has failed: a connection that was Ready before stays so. The end of the first contents triggers it.
func (r *reconciler) unlessStarting(connection *v1alpha1.OmniConnection, health mirror.Health, outcome loop.Outcome) loop.Outcome {
	left := r.options.Pool.ContentsGrace(string(connection.UID), r.started, r.options.Now())
	if left <= 0 || !connection.ShownReady() || health.Class != omni.ClassNotReady {
		return outcome
	}

	return outcome.Postponed(left)
}

// unlessBrief replaces the outcome while Omni may only be restarting: a connection that was Ready stays so for some
// seconds, unless somebody asked. What a person has to mend is shown at once.
func (r *reconciler) unlessBrief(connection *v1alpha1.OmniConnection, health mirror.Health, outcome loop.Outcome) loop.Outcome {
	left := health.Grace(r.options.Now())
	if left <= 0 || outcome.Stalls() || !connection.ShownReady() || !loop.IsAnswered(connection) {
		return outcome
	}

	return outcome.Postponed(left)
}

// waitForUsers keeps a deleted connection while OmniClusters refer to it. Their own deletion needs the session, so the
// session stays open, also after a restart.
func (r *reconciler) waitForUsers(ctx context.Context, s *scope) (loop.Outcome, error) {
	users, err := r.users(ctx, client.ObjectKeyFromObject(s.connection))
	if err != nil {
		return loop.Outcome{}, err
	}

	if len(users) == 0 {
		return loop.Continue(v1alpha1.ReasonDeleting, "nobody uses the connection"), nil
	}

	message := "nothing is lost: the connection works on for " + nameSome("OmniCluster", users) + ", and goes with the last of them"

	for _, phase := range []func(context.Context, *scope) (loop.Outcome, error){r.findCredentials, r.reach} {
		outcome, err := phase(ctx, s)
		if err != nil {
			return loop.Outcome{}, err
		}

		if !outcome.Continues() {
			return loop.Block(cmp.Or(outcome.After(), interval), v1alpha1.ReasonInUse, "%s; now it does not reach Omni: %s", message, outcome.Message()), nil
		}
	}

	return loop.Block(0, v1alpha1.ReasonInUse, "%s; to keep it, take off its finalizer and apply it again: docs/how-to/stop-a-deletion.md#an-omniconnection", message), nil
}

// closeSession closes the session.
func (r *reconciler) closeSession(_ context.Context, s *scope) (loop.Outcome, error) {
	r.options.Pool.Forget(string(s.connection.UID))

	return loop.Continue(v1alpha1.ReasonDeleting, "done"), nil
}

// users returns the names of the OmniClusters that refer to a connection, sorted.
func (r *reconciler) users(ctx context.Context, connection types.NamespacedName) ([]string, error) {
	list, err := r.listUsers(ctx, connection)
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(list))
	for i := range list {
		names = append(names, list[i].Name)
	}

	slices.Sort(names)

	return names, nil
}

// isUsed reports whether an OmniCluster refers to a connection.
func (r *reconciler) isUsed(ctx context.Context, connection types.NamespacedName) (bool, error) {
	list, err := r.listUsers(ctx, connection, client.Limit(1))

	return len(list) > 0, err
}

// listUsers lists the OmniClusters that refer to a connection, to be read only: they are those of the cache. Each cluster
// that comes or goes asks, and copies of all of them would cost a large fleet more than the rest of its work.
func (r *reconciler) listUsers(ctx context.Context, connection types.NamespacedName, options ...client.ListOption) ([]v1alpha1.OmniCluster, error) {
	list := &v1alpha1.OmniClusterList{}

	options = append(options,
		client.InNamespace(connection.Namespace), client.MatchingFields{index.ByConnection: connection.Name}, client.UnsafeDisableDeepCopy)
	if err := r.client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the OmniClusters of connection %q: %w", connection.Name, err)
	}

	return list.Items, nil
}

// gone removes everything that is kept about an object that no longer exists.
func (r *reconciler) gone(name types.NamespacedName) {
	r.mu.Lock()
	uid := r.uids[name]
	delete(r.uids, name)
	r.mu.Unlock()

	if uid != "" {
		r.forget(uid)
	}

	r.options.Objects.Forget(metrics.Object{Kind: kindName, NamespacedName: name})
	r.options.Calls.Forget(name.String())
}

// forget removes what is kept by the UID of an object, and closes its session.
func (r *reconciler) forget(uid types.UID) {
	r.mu.Lock()
	delete(r.warned, uid)
	delete(r.kept, uid)
	delete(r.unrestricted, uid)
	r.mu.Unlock()

	r.checks.Forget(uid)
	r.options.Pool.Forget(string(uid))
}

// nameSome lists names for messages: all of a few, the first of many.
func nameSome(kind string, names []string) string {
	const most = 5

	if len(names) == 1 {
		return fmt.Sprintf("%s %q", kind, names[0])
	}

	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}

	return words.Plural(len(names), kind) + ": " + words.Few(quoted, most, ", ")
}

// Options are what the controller needs besides the manager. All are required except Endpoints, Skew and Now.
type Options struct {
	// Pool keeps the sessions with Omni. This controller opens them.
	Pool *session.Pool
	// Objects and Calls receive the metrics.
	Objects *metrics.Objects
	Calls   *metrics.Calls
	// HealthChanged fires with the UID of a connection whose session's health changed, or whose key Omni refused for
	// another call.
	HealthChanged *trigger.Trigger[string]
	// Endpoints decides where keys may be used.
	Endpoints EndpointPolicy
	// Namespace is the one that is served; empty: all.
	Namespace string
	// Concurrency is the number of connections that are reconciled at the same time.
	Concurrency int
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller, and the one of the keys' Secrets, to a manager. The indexes of package index must be registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), options)
	reconciler := loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events})

	if err := r.addSecrets(mgr); err != nil {
		return err
	}

	return loop.For(builder.ControllerManagedBy(mgr).Named("omniconnection"), &v1alpha1.OmniConnection{}).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.connectionsOfSecret)).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(connectionOfCluster),
			builder.WithPredicates(onlyComingAndGoing())).
		WatchesRawSource(options.HealthChanged.Source(r.connectionsOfUID)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: reconciler.Failures()}).
		Complete(reconciler)
}

// onlyComingAndGoing accepts the changes that change who uses a connection.
func onlyComingAndGoing() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

func connectionOfCluster(_ context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok || cluster.Spec.ConnectionRef.Name == "" {
		return nil
	}

	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ConnectionRef.Name}}}
}

func (r *reconciler) connectionsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{index.ByKeySecret: secret.GetName()})
}

func (r *reconciler) connectionsOfUID(ctx context.Context, uid string) []reconcile.Request {
	return r.requests(ctx, client.MatchingFields{index.ByUID: uid})
}

// requests returns the connections that the options select.
func (r *reconciler) requests(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniConnectionList{}, options...)
}
