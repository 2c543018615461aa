package omniconnection

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

const (
	// checkPause is how long the result of a check is valid.
	checkPause = 30 * time.Second
	// checkTimeout ends a check that did not end after session.CheckTimeout.
	checkTimeout = 2 * session.CheckTimeout
)

// errUndecided means that Omni has not answered a check yet.
var errUndecided = errors.New("Omni has not answered yet")

// check has what the result of a check depends on.
type check struct {
	session   *session.Session
	requested string // the on-demand request that it answers
	refusals  uint64 // of the session, before it was asked
}

// checks keeps the last check of each connection.
type checks = asynccache.Cache[types.UID, check, struct{}]

func newChecks(options Options) *checks {
	return asynccache.New(asynccache.Options[types.UID, check, struct{}]{
		AnswerTimeout: reachTimeout, QuestionTimeout: checkTimeout, Now: options.Now,
		Keep: func(asynccache.Question[check], asynccache.Answer[struct{}]) time.Duration { return checkPause },
		Wake: func(uid types.UID) {
			if options.HealthChanged != nil {
				options.HealthChanged.Fire(string(uid))
			}
		},
	})
}

// check checks whether the session still works. It reuses a recent result, because clusters that come and go trigger
// their connection often. A request by annotation always makes a new check, and a result from before Omni refused the
// key for another call is not used.
//
// It waits no longer than ctx and then returns errUndecided: an Omni that does not answer must not occupy the workers
// that other connections need. The check goes on, and its end triggers the connection.
func (r *reconciler) check(ctx context.Context, connection *v1alpha1.OmniConnection, lease *session.Lease) error {
	session := lease.Session
	if session.Client() == nil {
		return nil
	}

	return r.ask(ctx, connection.UID, check{
		session:   session,
		requested: loop.Requests(connection),
		refusals:  session.Client().Refusals(),
	}, session.Client().Check)
}

// ask runs a check, or returns the result of the same check. Only the callers that waited for a failed check get its
// error; the next run checks again.
func (r *reconciler) ask(ctx context.Context, uid types.UID, wanted check, do func(context.Context) error) error {
	answer, ok := r.checks.Ask(ctx, uid, asynccache.Question[check]{Key: wanted, Group: string(uid)}, func(ctx context.Context, _ asynccache.Question[check]) (struct{}, error) {
		return struct{}{}, do(ctx)
	})
	if !ok {
		return errUndecided
	}

	if answer.Err != nil {
		r.checks.Forget(uid)
	}

	return answer.Err
}

// findAccess returns how people reach the clusters of an Omni; nil if Omni does not tell. Only `kubectl omni
// kubeconfig` needs it, so a connection is Ready without it, and a run waits no longer for it than for the connection.
func findAccess(ctx context.Context, connection *session.Session) *v1alpha1.OmniAccess {
	if connection.Client() == nil {
		return nil
	}

	ctx, stop := context.WithTimeout(ctx, reachTimeout)
	defer stop()

	access, err := connection.Access(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Omni does not say how people reach its clusters", "reason", omni.Message(err))

		return nil
	}

	return &v1alpha1.OmniAccess{KubernetesProxyURL: access.KubernetesProxyURL, OIDCIssuerURL: access.OIDCIssuerURL, Account: access.Account}
}

// EndpointPolicy decides where the keys of OmniConnections may be used. A user who may create an OmniConnection chooses
// its endpoint, and need not have the right to read the Secret: without a policy that endpoint receives what the key
// signed. The zero value warns of Secrets that name no endpoints, and allows TLS only.
type EndpointPolicy struct {
	// Allowed are endpoints that may be used with every key, whatever its Secret says.
	Allowed omni.Origins
	// Required refuses a key whose Secret names no endpoints, unless the
	// endpoint is one of Allowed. Otherwise that is a warning.
	Required bool
	// AllowInsecure allows endpoints without TLS, and insecureSkipTLSVerify.
	AllowInsecure bool
}

// unrestricted is a Secret that an event has warned of.
type unrestricted struct {
	secret   types.UID
	endpoint string
}

// judge decides whether the key of a Secret may be used with the connection's endpoint. Nothing may be signed or sent
// unless the outcome continues. The text is a warning for the condition; empty if there is none.
func (r *reconciler) judge(connection *v1alpha1.OmniConnection, secret *corev1.Secret) (loop.Outcome, string) {
	policy, endpoint := r.options.Endpoints, connection.Spec.Endpoint

	if !policy.AllowInsecure {
		if what := insecureTransport(connection); what != "" {
			return loop.Stall(v1alpha1.ReasonInsecureTransport, "%s: whoever is on the way could use the key; "+
				"nothing was sent. Use https with a certificate that is verified (spec.caBundle), or start omni-controller with --allow-insecure-omni", what), ""
		}
	}

	if policy.Allowed.Allow(endpoint) {
		return loop.Proceed(), ""
	}

	remedy := fmt.Sprintf("annotate the Secret: %s=%s", v1alpha1.AnnotationAllowedEndpoints, endpoint)

	text, set := secret.Annotations[v1alpha1.AnnotationAllowedEndpoints]
	if !set && policy.Required {
		return loop.Stall(v1alpha1.ReasonEndpointNotAllowed, "Secret %q does not say which endpoints its key may be used with; nothing was sent to %s. "+
			"If that is the right Omni, %s", secret.Name, endpoint, remedy), ""
	}

	if !set {
		return loop.Proceed(), r.warnOfUnrestricted(connection, secret, remedy)
	}

	origins, err := omni.ParseOrigins(text)
	if err != nil {
		return loop.Stall(v1alpha1.ReasonEndpointNotAllowed, "the annotation %s of Secret %q cannot be read: %s; nothing was sent to %s",
			v1alpha1.AnnotationAllowedEndpoints, secret.Name, omni.Message(err), endpoint), ""
	}

	if !origins.Allow(endpoint) {
		return loop.Stall(v1alpha1.ReasonEndpointNotAllowed, "Secret %q does not allow its key to be used with %s; nothing was sent there. "+
			"If that is the right Omni, %s", secret.Name, endpoint, remedy), ""
	}

	return loop.Proceed(), ""
}

// insecureTransport returns why the transport is not secure; empty if it is.
func insecureTransport(connection *v1alpha1.OmniConnection) string {
	switch {
	case omni.Plaintext(connection.Spec.Endpoint):
		return fmt.Sprintf("spec.endpoint %s is reached without TLS", connection.Spec.Endpoint)
	case connection.Spec.InsecureSkipTLSVerify:
		return "spec.insecureSkipTLSVerify accepts any server"
	default:
		return ""
	}
}

// warnOfUnrestricted sends one event for each Secret and endpoint that a key can be used with any endpoint.
func (r *reconciler) warnOfUnrestricted(connection *v1alpha1.OmniConnection, secret *corev1.Secret, remedy string) string {
	text := fmt.Sprintf("Secret %q does not say which endpoints its key may be used with: %s", secret.Name, remedy)
	found := unrestricted{secret: secret.UID, endpoint: connection.Spec.Endpoint}

	r.mu.Lock()
	told := r.unrestricted[connection.UID] == found
	r.unrestricted[connection.UID] = found
	r.mu.Unlock()

	if !told {
		r.events.Eventf(connection, nil, corev1.EventTypeWarning, "EndpointNotRestricted", "CheckKey", "%s", text)
	}

	return "; " + text
}
