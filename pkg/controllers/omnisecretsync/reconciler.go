package omnisecretsync

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// kindName is the kind's name in metrics.
const kindName = "OmniSecretSync"

const (
	// interval is how often the target is checked without a trigger: then a change in the workload cluster is found.
	interval = 5 * time.Minute
	// locationTimeout bounds what one run does at one location of a workload cluster, all requests together.
	locationTimeout = time.Minute
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options
	wake    *trigger.Trigger[types.NamespacedName]
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{client: cached, live: live, events: recorder, options: options, wake: trigger.New[types.NamespacedName](trigger.Pacing{})}
}

// scope is what the phases of one run share. Fields are empty until their phase
// has run.
type scope struct {
	sync   *v1alpha1.OmniSecretSync
	want   content
	source types.UID // of the Secret that is copied
	opened *clusteraccess.Opened
	held   map[string][]byte // by the target when it was read

	aboutToWrite  bool // the status has to name the target first
	oldestRemoved bool // nothing is at the oldest pending location any more
	wrote         bool
	synced        bool       // the target has the desired content
	removed       []location // where the Secrets of former targets were
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniSecretSync, *scope] {
	return loop.Kind[*v1alpha1.OmniSecretSync, *scope]{
		New:       func() *v1alpha1.OmniSecretSync { return &v1alpha1.OmniSecretSync{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  func(*v1alpha1.OmniSecretSync) time.Duration { return interval },
		Prepare: func(ctx context.Context, sync *v1alpha1.OmniSecretSync) {
			sync.Status.OtherHub = clusteraccess.OtherHub(ctx, r.client, r.options.HubID, clusteraccess.RequesterOf(sync, nil))
		},
		NewScope: func(sync *v1alpha1.OmniSecretSync) *scope { return &scope{sync: sync} },
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionSourceFound, Run: r.findSource},
			{Condition: v1alpha1.ConditionConnected, Run: r.connect},
			{Condition: v1alpha1.ConditionSynced, Run: r.write},
		},
		Delete: []loop.Phase[*scope]{{Run: r.delete}},
		Report: r.report,
		Close:  func(s *scope) { s.opened.Done() },
		Reported: func(sync *v1alpha1.OmniSecretSync) {
			r.options.Objects.SetInfo(objectOf(client.ObjectKeyFromObject(sync)), sync.Status.Conditions, sync.Spec.ClusterRef.Name)
		},
		Gone: func(name types.NamespacedName) { r.options.Objects.Forget(objectOf(name)) },
	}
}

func objectOf(name types.NamespacedName) metrics.Object {
	return metrics.Object{Kind: kindName, NamespacedName: name}
}

// findSource reads the source and computes the desired content.
func (r *reconciler) findSource(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := s.sync.Spec.SourceSecretRef.Name
	source, err := sources.Secret(ctx, r.live, sources.Reference{Namespace: s.sync.Namespace, Name: name, Field: "spec.sourceSecretRef"})
	if outcome, done := sources.Outcome(err, v1alpha1.ReasonSourceNotFound, "; what was written before stays"); done {
		return outcome, nil
	}

	if err != nil {
		return loop.Outcome{}, err
	}

	if s.want, err = build(s.sync, source, r.options.HubID); err != nil {
		return loop.Wait(0, v1alpha1.ReasonSourceNotFound, "Secret %q: %s; what was written before stays", name, err), nil // it is the outcome
	}

	s.source = source.UID

	return loop.Continue(v1alpha1.ReasonSucceeded, "Secret %q was found", name), nil
}

// connect connects to the workload cluster.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	opened, outcome, err := r.options.Access.Open(ctx, clusteraccess.RequesterOf(s.sync, r.wake))
	s.opened = opened

	return outcome, err
}
