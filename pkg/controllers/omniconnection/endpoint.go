package omniconnection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

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
