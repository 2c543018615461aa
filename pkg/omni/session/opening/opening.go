// Package opening decides what the users of an OmniConnection do while its controller opens a session: in the first moments
// of a leader, and after a new key, CA or endpoint, their statuses stay as they are.
package opening

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// Pause is how often a user looks for a session that is being opened. More often, the users of a large Omni would take the
// time that its copy needs.
const Pause = 5 * time.Second

// Unless replaces the outcome of a user without a session, or without its contents, while it is being opened. looked is
// when this process first looked for any session.
func Unless(pool *session.Pool, connection *v1alpha1.OmniConnection, looked, now time.Time, outcome loop.Outcome) loop.Outcome {
	left := pool.UserGrace(string(connection.UID), connection.ShownReady(), looked, now)
	if left <= 0 {
		return outcome
	}

	return outcome.Postponed(min(left, limiter.Jitter(Pause)))
}

// Endpoint returns the outcome for a session that leads to another endpoint than its connection; it continues if it does
// not. The status stays if the connection was Ready with that endpoint: its controller has not looked at it since, which
// takes a moment.
func Endpoint(lease *session.Lease, connection *v1alpha1.OmniConnection) loop.Outcome {
	if client := lease.Client(); client == nil || client.Endpoint() == connection.Spec.Endpoint {
		return loop.Proceed()
	}

	outcome := loop.Wait(time.Second, v1alpha1.ReasonConnectionNotReady, "OmniConnection %q is about to connect to another endpoint", connection.Name)
	if connection.ShownReady() {
		return outcome.Postponed(outcome.After())
	}

	return outcome
}
