package omnikubeconfigexport

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// issue makes sure that there is a kubeconfig to store: the one in the target, or a new one. It calls Omni only if a
// new one is needed and could be stored.
func (r *reconciler) issue(ctx context.Context, s *scope) (loop.Outcome, error) {
	if outcome := r.mayWrite(s.export); !outcome.Continues() {
		return outcome, nil
	}

	if err := r.readTarget(ctx, s); err != nil {
		return loop.Outcome{}, err
	}

	owner := judgeOwner(s.secret, s.export, s.shape, s.hubs)
	if outcome, err := r.judgeTarget(ctx, owner, s); err != nil || !outcome.Continues() {
		return outcome, err
	}

	switch owner {
	case ours:
		s.found = inspect(s.secret, s.shape)
		r.requests.hold(s.export, found{}) // somebody who deletes the Secret from now on wants another kubeconfig
	case absent:
		s.found = r.requests.held(s.export)
	default:
	}

	s.found.recorded = s.found.intact && s.found.hash == s.export.Status.KubeconfigHash

	at := r.times()

	s.cause = need(owner, s.found, s.want, s.lifetime(s.found), at)
	if s.cause == causeNone && owner == ours && r.tryOut(ctx, s) {
		s.cause = causeKey
	}

	switch s.cause {
	case causeNone:
		// What was issued is in the Secret, also if the answer to that write was lost. Kept, it would count as new at the next
		// renewal.
		r.requests.stored(s.export)

		return issuedUntil(s.found.claims), nil
	case causeDoubt:
		r.requests.stored(s.export)

		s.doubt = s.found.doubt(at)

		return loop.Continue(v1alpha1.ReasonClockSkew, "%s", s.doubt), nil
	default:
	}

	outcome, err := r.obtain(ctx, s)
	if err != nil || outcome.Continues() || outcome.Postpones() {
		return outcome, err
	}

	if errors.Is(ctx.Err(), context.Canceled) { // a process that stops ends its calls: nothing is late because of that
		return outcome, nil
	}

	if s.cause.keeps() {
		s.late = outcome.Message()

		return loop.Continue(v1alpha1.ReasonRenewalFailing, "%s", renewalFailing(s.found.claims, s.late)), nil
	}

	return outcome, nil
}

// obtain returns the kubeconfig that was issued and not stored, or requests one.
func (r *reconciler) obtain(ctx context.Context, s *scope) (loop.Outcome, error) {
	if s.fresh = r.requests.pending(s.export, s.want, r.times()); s.fresh != nil {
		return issuedUntil(s.fresh.claims), nil
	}

	lease, outcome := r.session(s)
	if !outcome.Continues() {
		return outcome, nil
	}
	defer lease.Release()

	release, outcome := r.enter(s)
	if !outcome.Continues() {
		return outcome, nil
	}
	defer release()

	if outcome := checkCluster(ctx, lease, s); !outcome.Continues() {
		return outcome, nil
	}

	refund, wait, failure := r.requests.take(s.export, r.options.Now())
	if wait > 0 {
		if failure != nil {
			return loop.Wait(wait, failure.Reason(), "%s", failure.Message()), nil
		}

		return loop.Wait(wait, v1alpha1.ReasonIssuingLimited, "%d kubeconfigs were issued in a short time, the last because %s; "+
			"the next is asked for when a minute has passed: look who changes the Secret or this object", issueBurst, s.cause), nil
	}

	raw, err := lease.IssueKubeconfig(ctx, session.KubeconfigRequest{
		Cluster: s.want.ClusterName, User: s.want.User, Groups: s.want.Groups, TTL: s.export.Spec.TTL.OrDefault(0),
	})
	if err != nil {
		outcome := explain(omni.Classify(err), s, omni.Message(err))
		r.requests.failed(s.export, outcome)

		if !mayHaveIssued(err) {
			refund()
		} else if !neverArrived(err) {
			r.announceUnanswered(s)
		}

		return outcome, nil
	}

	r.options.Kubeconfigs.CountIssued(client.ObjectKeyFromObject(s.export))

	return r.accept(raw, s)
}

// mayHaveIssued reports whether Omni may have issued a kubeconfig although the call failed: the connection broke, Omni itself failed,
// or the process stops.
func mayHaveIssued(err error) bool {
	switch omni.Classify(err) { // the others are refusals
	case omni.ClassUnreachable, omni.ClassTransient, omni.ClassCanceled:
		return true
	default:
		return false
	}
}

// neverArrived reports whether it is certain that Omni itself did not see a request: there was no connection (the text is gRPC's), or a
// proxy before it or its limit of calls turned the request away.
func neverArrived(err error) bool {
	code := status.Code(err)

	return code == codes.Unimplemented || code == codes.ResourceExhausted || strings.Contains(err.Error(), "Error while dialing")
}

// announceUnanswered announces a request for a kubeconfig that may have had an effect. Events of one series have the text of the first,
// so it has no time.
func (r *reconciler) announceUnanswered(s *scope) {
	r.events.Eventf(s.export, nil, corev1.EventTypeWarning, "KubeconfigUnanswered", "IssueKubeconfig",
		"Omni was asked for a kubeconfig for user %q and gave none: it may have issued one, valid for %s from then on, that is stored nowhere. Only an Admin of Omni can end it, by deleting its signing key",
		s.want.User, s.want.ttl())
}

// accept checks a kubeconfig that Omni issued, and keeps it until it is stored.
func (r *reconciler) accept(raw []byte, s *scope) (loop.Outcome, error) {
	to, err := readKubeconfig(raw)
	if err != nil {
		return loop.Outcome{}, fmt.Errorf("read the kubeconfig that Omni issued: %w", err)
	}

	token, err := readToken(to.token)
	if err != nil {
		return loop.Outcome{}, fmt.Errorf("read the kubeconfig that Omni issued: %w", err)
	}

	if !token.fits(s.want) {
		return loop.Wait(callPause, v1alpha1.ReasonWrongCluster,
			"Omni issued a kubeconfig for another cluster, user or groups than asked for (cluster ID %s instead of %s); it is not stored",
			token.ClusterUUID, s.want.ClusterID), nil
	}

	if err := r.checkServer(to.server, s.connection.Spec.Endpoint); err != nil {
		outcome := loop.Stall(v1alpha1.ReasonUnsafeKubeconfig, "Omni issued a kubeconfig whose server %s; it is not stored", err)
		r.requests.failed(s.export, outcome)

		return outcome, nil
	}

	fresh := &issued{access: to, claims: token, specHash: s.want.hash()}
	r.requests.keep(s.export, fresh)

	if at := r.times(); !token.believable(s.want, at) {
		outcome := loop.Wait(clockPause, v1alpha1.ReasonClockSkew,
			"the clocks of Omni and omni-controller differ: Omni issued a kubeconfig for %s that is valid until %s, and here it is %s. It is not stored; mend the clock that is wrong",
			s.want.ttl(), words.Time(token.expires()), words.Time(at.now))
		r.requests.failedByClock(s.export, outcome, at.now)

		return outcome, nil
	}

	s.fresh = fresh

	return issuedUntil(token), nil
}

// checkServer fails if no reader of a kubeconfig may be led to its server: the rules are those for workload clusters, because
// who decides about the Omni decides about the server. An Omni that is asked without encryption may serve its clusters so.
func (r *reconciler) checkServer(server, endpoint string) error {
	to, err := url.Parse(server)
	if err != nil {
		return errKubeconfig
	}

	if to.Scheme != "https" && !omni.Plaintext(endpoint) {
		return errors.New("is not https: the connection would not be encrypted")
	}

	return r.options.Guard.CheckHost(to.Hostname())
}

func issuedUntil(token claims) loop.Outcome {
	return loop.Continue(v1alpha1.ReasonIssued, "a kubeconfig for user %q, valid until %s", token.User, words.Time(token.expires()))
}

func renewalFailing(token claims, why string) string {
	return fmt.Sprintf("the kubeconfig is valid until %s; its renewal is due and fails: %s", words.Time(token.expires()), why)
}

// session returns the session that the controller of OmniConnection keeps.
func (r *reconciler) session(s *scope) (*session.Lease, loop.Outcome) {
	switch {
	case !s.cluster.DeletionTimestamp.IsZero():
		return nil, loop.Wait(0, v1alpha1.ReasonDeleting, "OmniCluster %q is being deleted: no new kubeconfig is issued", s.cluster.Name)
	case s.want.ClusterID == "":
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "OmniCluster %q has no cluster in Omni that it made or adopted; see its conditions", s.cluster.Name)
	case isReplaced(s.cluster):
		return nil, replaced(s)
	}

	lease, open := r.options.Pool.Get(string(s.connection.UID))
	if !open {
		outcome := loop.Wait(callPause, v1alpha1.ReasonConnectionNotReady, "OmniConnection %q is not connected to Omni; see its conditions", s.connection.Name)

		return nil, opening.Unless(r.options.Pool, s.connection, r.started, r.options.Now(), outcome)
	}

	if outcome := opening.Endpoint(lease, s.connection); !outcome.Continues() {
		lease.Release()

		return nil, outcome
	}

	return lease, loop.Proceed()
}

// enter takes one of the slots of the connection, until release is called. Without a slot the run ends, and the status
// stays, because nothing is wrong.
func (r *reconciler) enter(s *scope) (release func(), outcome loop.Outcome) {
	name := client.ObjectKeyFromObject(s.export)

	release, ok := r.slots.TryAcquire(s.connection.UID, 1, limiter.Waiter{Name: name.String(), Wake: func() { r.wake.Fire(name) }})
	if !ok {
		return nil, loop.Postpone(limiter.Jitter(limiter.WakePause), v1alpha1.ReasonProgressing, "other exports of OmniConnection %q come first", s.connection.Name)
	}

	return release, loop.Proceed()
}

// checkCluster makes sure, before a token is signed, that the cluster in Omni still belongs to the OmniCluster: naming
// somebody else's cluster must not give access to it.
func checkCluster(ctx context.Context, lease *session.Lease, s *scope) loop.Outcome {
	live, err := lease.InspectLive(ctx, s.want.ClusterName)
	if err != nil {
		return explain(omni.Classify(err), s, omni.Message(err))
	}

	switch {
	case !live.Exists:
		return loop.Wait(callPause, v1alpha1.ReasonClusterNotInOmni, "Omni has no cluster %q", s.want.ClusterName)
	case live.Marks.UID != string(s.cluster.UID):
		return loop.Stall(v1alpha1.ReasonNotOwned, "cluster %q in Omni does not belong to OmniCluster %q: no kubeconfig is issued for it",
			s.want.ClusterName, s.cluster.Name)
	case !s.hubs.Ours(live.Marks.Hub):
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "cluster %q in Omni belongs to OmniCluster %q of another hub, %s: no kubeconfig is issued for it here. "+
			"See the condition Stalled of the OmniCluster", s.want.ClusterName, s.cluster.Name, omni.Sanitize(live.Marks.Hub))
	case live.UUID != s.want.ClusterID && apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionStalled):
		return replaced(s)
	case live.UUID != s.want.ClusterID:
		return loop.Wait(callPause, v1alpha1.ReasonRemoteClusterReplaced, "cluster %q in Omni has another ID than OmniCluster %q knows; waits for its status",
			s.want.ClusterName, s.cluster.Name)
	}

	return loop.Proceed()
}

// isReplaced reports whether the OmniCluster waits for a person because the cluster in Omni is not the one that it made. A
// suspended one says so only of its plan.
func isReplaced(cluster *v1alpha1.OmniCluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
		return c.Reason == v1alpha1.ReasonRemoteClusterReplaced &&
			(c.Type == v1alpha1.ConditionStalled && c.Status == metav1.ConditionTrue || c.Type == v1alpha1.ConditionPlanned && c.Status == metav1.ConditionFalse)
	})
}

// replaced is the outcome for a cluster whose ID in Omni is not the one that the OmniCluster knows: a person has to decide what
// becomes of the OmniCluster. A change of its status wakes the export.
func replaced(s *scope) loop.Outcome {
	return loop.Stall(v1alpha1.ReasonRemoteClusterReplaced, "cluster %q in Omni has another ID than OmniCluster %q knows: no kubeconfig is issued for it. "+
		"See the conditions of the OmniCluster", s.want.ClusterName, s.cluster.Name)
}

// explain converts the class of a failure into the outcome for the user.
func explain(class omni.Class, s *scope, message string) loop.Outcome {
	message = fmt.Sprintf("OmniConnection %q: %s", s.connection.Name, message)

	stalled := map[omni.Class]string{ // the rest heals by itself
		omni.ClassDenied: v1alpha1.ReasonPermissionDenied, omni.ClassUnauthenticated: v1alpha1.ReasonUnauthenticated,
		omni.ClassKeyExpired: v1alpha1.ReasonKeyExpired, omni.ClassKeyInvalid: v1alpha1.ReasonKeyInvalid,
		omni.ClassTooMuchData: v1alpha1.ReasonTooMuchData, omni.ClassRefused: v1alpha1.ReasonRefused, omni.ClassTLS: v1alpha1.ReasonTLSFailed,
	}

	switch reason := stalled[class]; {
	case reason != "":
		return loop.Stall(reason, "%s", message)
	case class == omni.ClassNotReady, class == omni.ClassGone:
		return loop.Wait(time.Second, v1alpha1.ReasonClusterNotInOmni, "%s", message)
	default:
		return loop.Wait(callPause, v1alpha1.ReasonUnreachable, "%s", message)
	}
}
