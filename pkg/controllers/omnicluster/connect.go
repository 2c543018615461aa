package omnicluster

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// connect finds the session with Omni and reads the cluster there.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	outcome, err := r.findSession(ctx, s)
	if err != nil || !outcome.Continues() {
		s.postponed = outcome.Postpones()

		return outcome, err
	}

	// Only now: most runs of a large new fleet end without a slot.
	if s.input, err = collect(ctx, r.client, s.cluster); err != nil {
		return loop.Outcome{}, err
	}

	return r.readCluster(ctx, s)
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
		return r.unlessOpening(connection, loop.Wait(0, v1alpha1.ReasonConnectionNotReady, "%s", notConnected(connection))), nil
	}

	s.lease = lease

	if outcome := opening.Endpoint(lease, connection); !outcome.Continues() {
		return outcome, nil
	}

	if health := lease.Health(); !health.Synced {
		return r.unsynced(s, health), nil
	}

	return takeSlot(s), nil
}

// unsynced returns the outcome while the copy of Omni is not current. Nothing is planned from it meanwhile. A restart of
// Omni leaves the status of the whole fleet as it is; a deletion counts from its first run how long Omni is away, and who
// asks for something is answered.
func (r *reconciler) unsynced(s *scope, health mirror.Health) loop.Outcome {
	outcome := loop.Wait(0, v1alpha1.ReasonMirrorNotSynced, "OmniConnection %q: %s", s.connection.Name, health.Message)
	if health.Class == omni.ClassNotReady {
		return r.unlessOpening(s.connection, outcome)
	}

	if left := health.Grace(r.options.Now()); left > 0 && s.cluster.DeletionTimestamp.IsZero() && loop.IsAnswered(s.cluster) {
		return outcome.Postponed(left)
	}

	return loop.Wait(0, outcome.Reason(), "%s; nothing newer than %s is known", outcome.Message(), words.Time(health.Since))
}

// unlessOpening replaces the outcome while the session is being opened. The session wakes the cluster when it is open and when
// it is complete.
func (r *reconciler) unlessOpening(connection *v1alpha1.OmniConnection, outcome loop.Outcome) loop.Outcome {
	return opening.Unless(r.options.Pool, connection, r.started, r.options.Now(), outcome)
}

// takeSlot limits the workers that the runs of one connection use. A cluster without a slot keeps its status, because
// nothing is wrong with it; only if it is not Ready and the wait may be long, the outcome has what it waits for. A
// deletion never gets that outcome: it would mistake it for a broken connection.
func takeSlot(s *scope) loop.Outcome {
	if s.lease.Enter(s.name) {
		return loop.Proceed()
	}

	s.turnedAway = true
	pause := limiter.Jitter(limiter.WakePause)
	ready := apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady)

	if ready || !s.cluster.DeletionTimestamp.IsZero() || !s.lease.Slow() {
		return loop.Postpone(pause, v1alpha1.ReasonProgressing, "other clusters of the connection come first")
	}

	return loop.Wait(pause, v1alpha1.ReasonConnectionNotReady,
		"OmniConnection %q: Omni answers slowly or not at all, and other clusters wait for it; this one comes next by itself", s.connection.Name)
}

// notConnected returns why a connection cannot be used, with the message of its own condition, so that nobody has to
// look there first. Messages of conditions have no secrets.
func notConnected(connection *v1alpha1.OmniConnection) string {
	text := fmt.Sprintf("OmniConnection %q is not connected to Omni", connection.Name)

	ready := apimeta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "" {
		return text + "; see its conditions"
	}

	return text + ": " + ready.Reason + ": " + ready.Message
}
