package omnicluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

// kindName is the kind's name in metrics.
const kindName = "OmniCluster"

const (
	// defaultInterval is used if spec.syncInterval cannot be parsed.
	defaultInterval = 5 * time.Minute
	// catchUpTime is how long a run waits for the local copy to show our own
	// last writes before it gives the worker back.
	catchUpTime = 2 * time.Second
	// catchUpPoll is how often the run checks the copy meanwhile.
	catchUpPoll = 10 * time.Millisecond
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options

	processStates processStates
	prunes        prunes // of documents, by namespace

	firstLook sync.Once
	started   time.Time // when the first object was looked at
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{client: cached, live: live, events: recorder, options: options}
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniCluster, *scope] {
	return loop.Kind[*v1alpha1.OmniCluster, *scope]{
		New:       func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		Finalizer: v1alpha1.Finalizer,
		Interval: func(cluster *v1alpha1.OmniCluster) time.Duration {
			return max(cluster.Spec.SyncInterval.OrDefault(defaultInterval), v1alpha1.MinSyncInterval)
		},
		Suspended:    func(cluster *v1alpha1.OmniCluster) bool { return cluster.Spec.Suspend },
		RunSuspended: true,
		NewScope: func(cluster *v1alpha1.OmniCluster) *scope {
			r.firstLook.Do(func() { r.started = r.options.Now() })
			r.correctTimes(cluster)
			r.restoreSecondWriter(cluster)

			return &scope{cluster: cluster, name: cluster.EffectiveClusterName(), hubs: hubs.Hubs{Own: r.options.HubID}}
		},
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionConnectionReady, Run: r.connect},
			{Condition: v1alpha1.ConditionAssembled, Run: r.assemble},
			{Condition: v1alpha1.ConditionValidated, Run: r.validate},
			{Condition: v1alpha1.ConditionPlanned, Run: r.makePlan},
			{Condition: v1alpha1.ConditionSynced, Run: r.sync},
			{Condition: v1alpha1.ConditionAvailable, Run: r.checkAvailable},
		},
		Delete:        []loop.Phase[*scope]{{Run: r.delete}},
		Report:        r.report,
		Transient:     (*scope).transient,
		Due:           r.turnDue,
		StatusWritten: r.announceStatus,
		Reported:      r.measure,
		Gone: func(name types.NamespacedName) {
			r.processStates.forget(name)
			r.options.Well.Forget(name)
			r.options.Owners.Forget(name)
			r.options.Objects.Forget(metrics.Object{Kind: kindName, NamespacedName: name})
		},
		Close: func(s *scope) {
			if s.lease != nil {
				s.lease.Release()
			}
		},
	}
}
