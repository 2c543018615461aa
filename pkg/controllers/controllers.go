// Package controllers puts the controllers of all kinds together: they share
// the sessions with Omni, the indexes of the cache and the metrics. It is the
// only package of this tree that commands use, and it has no logic.
//
// Each kind's Add says what wakes its objects. A kind whose status repeats what Omni says (OmniConnection, OmniCluster,
// OmniKubeconfigExport) watches its own objects by loop.For, because such a status may change with each look; the other
// kinds look again after every change. Where Omni itself wakes objects, again and again (OmniConnection, OmniCluster),
// the rate limiter is Failures of the loop: its events must not end the pause after an error. Everywhere else it is
// loop.RateLimiter.
package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/child"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/deletionrights"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omniconnection"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnikubeconfigexport"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Options are what the controllers need besides the manager.
type Options struct {
	// Registry takes the metrics.
	Registry prometheus.Registerer
	// SettleTime is how long destructive changes must be unchanged before they are applied.
	SettleTime time.Duration
	// JoinSettleTime is how long the documents of a cluster must be unchanged before a machine joins it; 0: it does not wait.
	JoinSettleTime time.Duration
	// ManagementCluster is written on the clusters in Omni, for people. May be empty.
	ManagementCluster string
	// HubID is the ID of the hub in marks of ownership; see package hub.
	HubID string
	// Namespace is the one that is served; empty: all.
	Namespace string
	// Deletion says what outlives the deletion of Namespace until the controllers have cleaned up; see DeletionRights.
	Deletion DeletionRights
	// ExportNamespaces are those besides its own to which an OmniKubeconfigExport may write its Secret.
	ExportNamespaces []string
	// Endpoints says where the keys of OmniConnections may be used.
	Endpoints EndpointPolicy
	// Sources says which Secrets users may not have the controllers use.
	Sources SourcePolicy
	// Guard decides to which addresses the controllers connect for users: those of Omni, of workload clusters
	// and their proxies, and of chart repositories.
	Guard dialguard.Guard
	// Rendering bounds the processes that render Helm charts; see Rendering.
	Rendering Rendering
	// Limits is how much each connection may ask of its Omni; see Limits.
	Limits Limits
	// Rollouts has changes of clusters wait for their turn in the OmniRolloutPolicies.
	Rollouts bool
	// RolloutReadyTime is how long a cluster must be Ready before its turn in a rollout counts as done.
	RolloutReadyTime time.Duration
	// ServerClock is by how much the clock of omni-apiserver is ahead of ours, HubClock by how much that of kube-apiserver.
	// Nil: they are the same.
	ServerClock, HubClock func() time.Duration
	// Skew is the larger of the two differences of late. Nil: there is none.
	Skew skew.Comparison
	// Concurrency is the number of objects that are looked at at once, by kind.
	Concurrency Concurrency
}

// EndpointPolicy says where the keys of OmniConnections may be used.
type EndpointPolicy = omniconnection.EndpointPolicy

// SourcePolicy says which Secrets users may not have the controllers use.
type SourcePolicy = sources.Policy

// ParseEndpoints reads the endpoints of an EndpointPolicy; an error names the wrong one by its number.
func ParseEndpoints(text string) (omni.Origins, error) { return omni.ParseOrigins(text) }

// Rendering bounds the processes that render Helm charts: how many there are, how
// much memory a chart may take in one of them, how long it may take.
type Rendering = render.Options

// The defaults of Rendering, and the least memory.
const (
	DefaultRenderWorkers = render.DefaultWorkers
	DefaultRenderMemory  = render.DefaultMemory
	DefaultRenderTimeout = render.DefaultTimeout
	MinRenderMemory      = render.MinMemory
)

// MaxJoinSettleTime is the longest JoinSettleTime: so long may documents that go on changing keep a machine from joining.
const MaxJoinSettleTime = consent.MaxJoinWait

// DeletionRights names the RoleBinding of which a copy is kept while the namespace that is served is being deleted, and the Lease.
type DeletionRights = deletionrights.Options

// DeletionBinding returns the name of the copy of a RoleBinding that is kept.
func DeletionBinding(name string) string { return deletionrights.CopyName(name) }

// Limits is how much one connection may ask of its Omni (calls per second, and
// how many at once), and how much is kept of Omnis.
type Limits = bounds.Limits

// The default Limits.
const (
	DefaultQPS         = bounds.DefaultQPS
	DefaultBurst       = bounds.DefaultBurst
	DefaultResources   = bounds.DefaultResources
	DefaultMemory      = bounds.DefaultMemory
	DefaultTotalMemory = bounds.DefaultTotalMemory
)

// connectionDivisor is the part of the workers of OmniCluster that one connection
// may keep: an Omni that answers slowly leaves the rest to the others.
const connectionDivisor = 4

// Concurrency is the number of workers of each kind.
type Concurrency struct {
	OmniConnection, OmniCluster, OmniControlPlane, OmniWorkers, OmniMachine, OmniKubeconfigExport int
	OmniSecretSync, OmniHelmRelease, OmniRolloutPolicy                                            int
}

// Add adds every controller to a manager that has not started yet.
func Add(ctx context.Context, mgr manager.Manager, options Options) error {
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}

	shared, err := newShared(ctx, options)
	if err != nil {
		return err
	}

	// What reads Secrets for users. The controller of OmniKubeconfigExport reads its own.
	guarded := options.Sources.Manager(mgr)

	if err := addOmni(guarded, shared, options); err != nil {
		return err
	}

	if err := addRollouts(mgr, shared, options); err != nil {
		return err
	}

	if err := addWorkload(guarded, shared, options); err != nil {
		return err
	}

	if err := omnikubeconfigexport.Add(mgr, omnikubeconfigexport.Options{
		Pool:        shared.pool,
		Objects:     shared.objects,
		Kubeconfigs: shared.kubeconfigs,
		Sources:     options.Sources,
		Namespaces:  options.ExportNamespaces,
		HubID:       options.HubID,
		Guard:       options.Guard,
		Refused:     shared.refused,
		Skew:        options.Skew,
		Concurrency: options.Concurrency.OmniKubeconfigExport,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniKubeconfigExport: %w", err)
	}

	deletion := options.Deletion
	deletion.Skew = options.Skew

	if err := deletionrights.Add(mgr, deletion); err != nil {
		return fmt.Errorf("add the controller of what a deletion of the namespace needs: %w", err)
	}

	return child.Add(mgr, child.Options{Objects: shared.objects, Concurrency: child.Concurrency{
		ControlPlane: options.Concurrency.OmniControlPlane,
		Workers:      options.Concurrency.OmniWorkers,
		Machine:      options.Concurrency.OmniMachine,
	}})
}

// shared is what the controllers share.
type shared struct {
	collectors

	pool *session.Pool // of the sessions with Omni
	// connectionHealth and clusterHealth are fired with the UID of an OmniConnection, clusterChanged with a cluster in Omni.
	connectionHealth, clusterHealth *trigger.Trigger[string]
	clusterChanged                  *trigger.Trigger[omnicluster.Remote]
	// refused is fired with the name of a Secret whose kubeconfig a workload cluster answered with 401.
	refused *trigger.Trigger[types.NamespacedName]

	well   *hubs.Well // nil if there are no rollouts
	owners *hubs.Owners
}

func newShared(ctx context.Context, options Options) (shared, error) {
	measured, err := register(options.Registry)
	if err != nil {
		return shared{}, err
	}

	made := shared{
		collectors:       measured,
		connectionHealth: trigger.New[string](wakePacing()),
		clusterHealth:    trigger.New[string](wakePacing()),
		refused:          trigger.New[types.NamespacedName](trigger.Pacing{Delay: wakeDelay, Spacing: refusedSpacing}),
		well:             newWell(options),
		owners:           hubs.NewOwners(),
	}
	made.clusterChanged = newClusterChanged(made.clusterHealth)
	made.pool = newPool(ctx, options, made)

	return made, nil
}

// collectors are the metrics that the controllers write.
type collectors struct {
	objects     *metrics.Objects
	calls       *metrics.Calls
	kubeconfigs *metrics.Kubeconfigs
	rollouts    *metrics.Rollouts
}

func register(registry prometheus.Registerer) (collectors, error) {
	c := collectors{objects: metrics.NewObjects(), calls: metrics.NewCalls(), kubeconfigs: metrics.NewKubeconfigs(), rollouts: metrics.NewRollouts()}

	for _, collector := range []prometheus.Collector{c.objects, c.calls, c.kubeconfigs, c.rollouts} {
		if err := registry.Register(collector); err != nil {
			return collectors{}, fmt.Errorf("register metrics: %w", err)
		}
	}

	return c, nil
}

// newPool makes the pool of sessions with Omni. The sessions outlive the context by the time that a graceful stop takes: what
// a worker has begun it may finish. They end with the process.
func newPool(ctx context.Context, options Options, shared shared) *session.Pool {
	return session.NewPool(context.WithoutCancel(ctx), session.PoolOptions{
		ClusterChanged: func(uid, cluster string) {
			shared.clusterChanged.Fire(omnicluster.Remote{Connection: uid, Cluster: cluster})
		},
		HealthChanged: func(uid string) {
			shared.connectionHealth.Fire(uid)
			shared.clusterHealth.Fire(uid)
		},
		KeyRefused: shared.connectionHealth.Fire,

		Observer:  shared.calls.Observe,
		Throttled: shared.calls.Throttle,
		Limits:    options.Limits,
		Guard:     &options.Guard,
		Runs:      max(1, options.Concurrency.OmniCluster/connectionDivisor),
	})
}

// RenderWorker does the work of a child process that renders Helm charts, if the
// program was started as one: it returns when there is no more to do, with the code
// to exit with. Otherwise asked is false and nothing is done. It has to come first:
// a child has neither flags nor an environment, and must not get any.
func RenderWorker(arguments []string) (code int, asked bool) {
	if !worker.Asked(arguments) {
		return 0, false
	}

	return worker.Run(arguments), true
}

const (
	// wakeDelay gathers a burst of changes in Omni into one look at the cluster.
	wakeDelay = 100 * time.Millisecond
	// wakeSpacing bounds the looks, and so the status writes, that a storm of changes in Omni costs one cluster. It
	// grows to wakeLongest while the cluster does not come to rest, such as one that boots: each of its statuses may
	// cost a write to each of its documents, too. A change shows after wakeLongest at the latest.
	wakeSpacing = 400 * time.Millisecond
	wakeLongest = 2 * time.Second
	// maxRemotes is how many changed clusters of one Omni may wait to be looked up. An Omni chooses their names, and can
	// send them faster than they are looked up. Beyond it all OmniClusters of the connection are looked at.
	maxRemotes = 1000
	// refusedSpacing is how often an export is looked at, at most, because its readers get 401.
	refusedSpacing = 10 * time.Second
	// seenDelay gathers the clusters that a new process sees first into one run of their policy.
	seenDelay = time.Second
)

func wakePacing() trigger.Pacing {
	return trigger.Pacing{Delay: wakeDelay, Spacing: wakeSpacing, LongestSpacing: wakeLongest}
}

// newClusterChanged returns the trigger for changed clusters in Omni. clusterHealth is the one that looks at all
// OmniClusters of a connection.
func newClusterChanged(clusterHealth *trigger.Trigger[string]) *trigger.Trigger[omnicluster.Remote] {
	return trigger.NewBounded(wakePacing(), trigger.Bound[omnicluster.Remote]{
		Keys:    maxRemotes,
		GroupOf: func(remote omnicluster.Remote) string { return remote.Connection },
		Instead: clusterHealth.Fire,
	})
}

// newWell returns what the controller of OmniCluster tells that of OmniRolloutPolicy; nil if there are no rollouts.
func newWell(options Options) *hubs.Well {
	if !options.Rollouts {
		return nil
	}

	return hubs.NewWell(trigger.Pacing{Delay: seenDelay})
}
