package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// kindName is the kind's name in metrics.
const kindName = "OmniCluster"

const (
	// defaultInterval and minimumInterval bound spec.syncInterval.
	defaultInterval = 5 * time.Minute
	minimumInterval = 30 * time.Second
	// catchUpTime is how long a run waits for the local copy to show our own
	// last writes before it gives the worker back.
	catchUpTime = 2 * time.Second
	// catchUpPoll is how often it looks meanwhile.
	catchUpPoll = 10 * time.Millisecond
	// startGrace is how long after the start of the process a session may be
	// missing before a status says so.
	startGrace = 10 * time.Second
)

// reconciler holds what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options
	settled *settleMemory
	outages *outageMemory
	rivals  *rivalMemory
	refused *refusalMemory

	firstLook sync.Once
	started   time.Time // when the first object was looked at
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{
		client: cached, live: live, events: recorder, options: options,
		settled: newSettleMemory(), outages: newOutageMemory(), rivals: newRivalMemory(), refused: newRefusalMemory(),
	}
}

// scope is what the phases of one run share. Fields are empty until their phase
// has run.
type scope struct {
	cluster *v1alpha1.OmniCluster
	name    string // of the cluster in Omni
	input   template.Input

	connection *v1alpha1.OmniConnection
	hubs       hubs.Hubs // whose marks count as ours
	lease      *session.Lease
	live       omni.Live
	looked     bool // live is known
	ownerGone  bool // the object whose mark the cluster carries does not exist here
	adopting   bool // every destroy has to be approved, as long as the plan is not empty
	behind     bool // our own last writes are not to be seen yet

	documents *template.Documents
	secrets   secrets // what the documents got from Secrets
	rendered  []byte
	plan      *plan.Plan
	decision  consent.Decision // about the plan
	refused   []refusal        // of the plan, what Omni refuses
	wrote     bool             // Omni took a change in this run
	synced    bool             // Omni has what the documents say
	remote    *observe.Status
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniCluster, *scope] {
	return loop.Kind[*v1alpha1.OmniCluster, *scope]{
		New:       func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		Finalizer: v1alpha1.Finalizer,
		Interval: func(cluster *v1alpha1.OmniCluster) time.Duration {
			return max(cluster.Spec.SyncInterval.OrDefault(defaultInterval), minimumInterval)
		},
		Suspended:    func(cluster *v1alpha1.OmniCluster) bool { return cluster.Spec.Suspend },
		RunSuspended: true,
		NewScope: func(cluster *v1alpha1.OmniCluster) *scope {
			r.firstLook.Do(func() { r.started = r.options.Now() })

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
		Delete:   []loop.Phase[*scope]{{Run: r.delete}},
		Report:   r.report,
		Reported: r.measure,
		Gone: func(name types.NamespacedName) {
			r.settled.forget(name)
			r.outages.forget(name)
			r.rivals.forget(name)
			r.refused.forget(name)
			r.options.Objects.Forget(metrics.Object{Kind: kindName, NamespacedName: name})
		},
		Close: func(s *scope) {
			if s.lease != nil {
				s.lease.Release()
			}
		},
	}
}

// connect finds the session with Omni and looks at the cluster there.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	if err := collect(ctx, r.client, s); err != nil {
		return loop.Outcome{}, err
	}

	outcome, err := r.findSession(ctx, s)
	if err != nil || !outcome.Continues() {
		return outcome, err
	}

	return r.look(ctx, s)
}

// findSession leases the session that the connection's controller keeps.
func (r *reconciler) findSession(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := s.cluster.Spec.ConnectionRef.Name
	connection := &v1alpha1.OmniConnection{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, connection)
	if client.IgnoreNotFound(err) != nil {
		return loop.Outcome{}, fmt.Errorf("read OmniConnection %q: %w", name, err)
	}

	if err != nil {
		return loop.Wait(0, v1alpha1.ReasonConnectionNotFound, "OmniConnection %q does not exist", name), nil
	}

	s.connection, s.hubs = connection, hubs.Of(r.options.HubID, connection)

	lease, open := r.options.Pool.Get(string(connection.UID))
	if !open {
		return r.unlessStarting(loop.Wait(0, v1alpha1.ReasonConnectionNotReady, "%s", notConnected(connection))), nil
	}

	s.lease = lease

	if session := lease.Client(); session != nil && session.Endpoint() != connection.Spec.Endpoint {
		return loop.Wait(time.Second, v1alpha1.ReasonConnectionNotReady, "OmniConnection %q is about to connect to another endpoint", name), nil
	}

	if health := lease.Health(); !health.Synced {
		outcome := loop.Wait(0, v1alpha1.ReasonMirrorNotSynced, "OmniConnection %q: %s", name, health.Message)
		if health.Class == omni.ClassNotReady {
			outcome = r.unlessStarting(outcome)
		}

		return outcome, nil
	}

	return takeSlot(s, loop.Continue(v1alpha1.ReasonConnected, "OmniConnection %q is connected to %s", name, connection.Spec.Endpoint)), nil
}

// unlessStarting postpones in the first moments of the process: the controller
// of OmniConnection is about to open the sessions, and rings when it has.
func (r *reconciler) unlessStarting(outcome loop.Outcome) loop.Outcome {
	left := startGrace - r.options.Now().Sub(r.started)
	if left <= 0 {
		return outcome
	}

	return loop.Postpone(min(left, time.Second), outcome.Reason(), "%s", outcome.Message())
}

// look reads what Omni has of the cluster, once the local copy shows our own
// last writes.
func (r *reconciler) look(ctx context.Context, s *scope) (loop.Outcome, error) {
	if err := r.catchUp(ctx, s); err != nil {
		if errors.Is(err, omni.ErrBehind) || errors.Is(err, omni.ErrNotSynced) {
			s.behind = errors.Is(err, omni.ErrBehind)

			return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", omni.Message(err)), nil
		}

		return loop.Outcome{}, err
	}

	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name, markKeys())
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	s.live, s.looked = live, true
	s.ownerGone = r.isOwnerGone(ctx, s)
	s.adopting = claimOf(s).IsAdopting(s.cluster.Status.Adopting)

	return loop.Continue(v1alpha1.ReasonConnected, "OmniConnection %q is connected to %s", s.connection.Name, s.connection.Spec.Endpoint), nil
}

// markKeys are the annotations that hold the owner's mark.
func markKeys() omni.MarkKeys {
	return omni.MarkKeys{
		UID: v1alpha1.MarkOwnerUID, Hub: v1alpha1.MarkHub, Namespace: v1alpha1.MarkOwnerNamespace,
		Name: v1alpha1.MarkOwnerName, ManagementCluster: v1alpha1.MarkManagementCluster,
	}
}

// isOwnerGone looks for the object whose mark a cluster of somebody else carries. What
// cannot be told from here, such as an object of another management cluster or of a
// namespace that is not watched, counts as there.
func (r *reconciler) isOwnerGone(ctx context.Context, s *scope) bool {
	marks := s.live.Marks
	if !s.live.Exists || marks.UID == "" || s.owns(s.live) || !s.hubs.Ours(marks.Hub) || marks.ManagementCluster != r.options.ManagementCluster {
		return false
	}

	other := &v1alpha1.OmniCluster{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: marks.Namespace, Name: marks.Name}, other)
	if err != nil {
		return apierrors.IsNotFound(err)
	}

	return string(other.UID) != marks.UID
}

// catchUp waits a moment for the local copy to show our own last writes, so that
// every write does not cost a run that finds nothing to do yet.
func (r *reconciler) catchUp(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()

	for {
		err := s.lease.Ready(s.name)
		if !errors.Is(err, omni.ErrBehind) {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(catchUpPoll):
		}
	}
}

// checkAvailable asks whether Omni says that the cluster runs.
func (r *reconciler) checkAvailable(ctx context.Context, s *scope) (loop.Outcome, error) {
	if s.wrote {
		// Omni's own verdicts are about the time before our changes.
		if err := r.catchUp(ctx, s); err != nil {
			return loop.Wait(time.Second, v1alpha1.ReasonNotRunning, "Omni has just taken changes: %s", omni.Message(err)), nil
		}
	}

	status, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	s.remote = &status

	running, reason, message := observe.Running(status)
	if !running {
		return loop.Wait(0, availableReason(reason), "%s", message), nil
	}

	if answered, missing := observe.Answered(status); !answered && isStarting(s) {
		return loop.Wait(0, v1alpha1.ReasonNotRunning, "%s", missing), nil
	}

	return loop.Continue(v1alpha1.ReasonRunning, "%s", message), nil
}

// isStarting tells whether Kubernetes has yet to be seen to work in this very
// cluster. What the status does not say to be starting, and knows by its ID, ran
// before, or is known from a version that did not ask.
func isStarting(s *scope) bool {
	status := s.cluster.Status

	return status.Starting || s.live.UUID == "" || status.OmniClusterID != s.live.UUID
}

func availableReason(reason string) string {
	switch reason {
	case observe.ReasonKubernetesUpgrading, observe.ReasonTalosUpgrading:
		return v1alpha1.ReasonUpgrading
	case observe.ReasonUpgradeFailed:
		return v1alpha1.ReasonUpgradeFailed
	default:
		return v1alpha1.ReasonNotRunning
	}
}
