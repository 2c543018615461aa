package clusteraccess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// Reason returns the condition reason for an error of this package or of a request to a workload cluster.
func Reason(err error) string {
	var forbidden *dialguard.ForbiddenError

	switch {
	case errors.Is(err, ErrUnsafe):
		return v1alpha1.ReasonUnsafeKubeconfig
	case errors.As(err, &forbidden):
		return v1alpha1.ReasonForbiddenAddress
	case errors.Is(err, ErrInvalid):
		return v1alpha1.ReasonKubeconfigInvalid
	case apierrors.IsUnauthorized(err):
		return v1alpha1.ReasonUnauthenticated
	case apierrors.IsForbidden(err):
		return v1alpha1.ReasonForbidden
	case Unreachable(err):
		return v1alpha1.ReasonClusterUnreachable
	default:
		return v1alpha1.ReasonError
	}
}

// forbiddenPause is how long to wait before something is tried again that a cluster's RBAC did not allow.
const forbiddenPause = time.Minute

// Forbidden returns the outcome for something that the RBAC of a workload cluster does not allow to an object. It waits, because the
// rights often come right after what needs them, and tries again every minute. Why must hold no secret.
func Forbidden(object client.Object, why string) loop.Outcome {
	if object.GetDeletionTimestamp().IsZero() { // a deletion says itself when it is tried again
		why += "; it is tried again every minute, and at once when the annotation " + v1alpha1.AnnotationReconcileRequestedAt + " gets a new value"
	}

	return loop.Wait(forbiddenPause, v1alpha1.ReasonForbidden, "%s", why)
}

// NotFound reports whether the cluster says that an object does not exist, or the namespace that it was to be made in. client-go
// makes a "not found" of every answer 404. Of kinds that every cluster serves, such as Secrets, a Kubernetes says so in a Status;
// another answer is that of a gateway before it, which says nothing of the object.
func NotFound(err error) bool { return apierrors.IsNotFound(err) && !byGateway(err) }

// byGateway reports whether an answer was not made by a Kubernetes.
func byGateway(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// keyNotFound is what Omni's Kubernetes proxy says, among other words, to a token that was signed with a key that it does not have.
const keyNotFound = "key not found"

// KeyDeleted reports whether an error is the refusal of a token because Omni does not have the key any more that signed it.
func KeyDeleted(err error) bool {
	return apierrors.IsUnauthorized(err) && strings.Contains(SaidBy(err), keyNotFound)
}

// SaidBy returns the text of an answer that a proxy before the Kubernetes made, on one line; empty if there is none.
func SaidBy(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}

	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return redact.Line(cause.Message)
		}
	}

	return ""
}

// Unreachable reports whether an error means that the cluster did not answer, or that only a proxy before it did.
func Unreachable(err error) bool {
	if err == nil {
		return false
	}

	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, ErrUnsafe) && !errors.Is(err, ErrInvalid)
	}

	switch status.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests, http.StatusInternalServerError:
		return true
	case http.StatusNotFound:
		return byGateway(err)
	default:
		return false
	}
}

// Message returns a text for conditions and events: what failed in plain words, then the error's own text, on one line,
// without the credentials and without other secrets that were sent.
func (c *Cluster) Message(err error, sent ...*redact.Secrets) string {
	if err == nil {
		return ""
	}

	// client-go adds around it that a retry may help.
	var tooLarge *tooLargeError
	if errors.As(err, &tooLarge) {
		return tooLarge.Error()
	}

	secrets := c.secrets
	for _, others := range sent {
		secrets = secrets.With(others)
	}

	// A server may echo the request.
	said := secrets.Line(err.Error())

	switch {
	case errors.Is(err, ErrUnsafe), errors.Is(err, ErrInvalid), errors.Is(err, ErrProbing), errors.Is(err, ErrSilent):
		return said
	case apierrors.IsUnauthorized(err):
		if expiry := c.expiry(); !expiry.IsZero() && expiry.Before(c.now()) {
			return "the token of the kubeconfig expired at " + expiry.Format(time.RFC3339)
		}

		if KeyDeleted(err) {
			return "Omni does not know the key any more that signed the token of the kubeconfig: an Admin deleted it there. An OmniKubeconfigExport gets another kubeconfig by itself"
		}

		return "the workload cluster does not accept the credentials of the kubeconfig (expired, revoked, or of another cluster)"
	case apierrors.IsForbidden(err):
		return "the workload cluster's RBAC does not allow this, or the kubeconfig is for a cluster that was made again since: " + said
	case Reason(err) == v1alpha1.ReasonForbiddenAddress:
		return "the kubeconfig names an address to which nothing is sent: " + said
	case errors.Is(err, context.DeadlineExceeded):
		return "the workload cluster does not answer in time: " + said
	case Unreachable(err):
		return "the workload cluster cannot be reached: " + said
	default:
		return said
	}
}

// secrets returns the credentials of a kubeconfig, in the forms in which they are sent: if a server echoes a header,
// the credentials must not get into a condition.
func (a *settings) secrets() *redact.Secrets {
	secrets := redact.Of(a.token, a.secret, string(a.key))
	if a.username != "" {
		secrets.Add(a.username + ":" + a.secret)
	}

	if a.proxy != nil && a.proxy.User != nil {
		password, _ := a.proxy.User.Password()
		secrets.Add(password, a.proxy.User.Username()+":"+password)
	}

	return secrets
}

// maxRefusal is how much of an error answer is read, in bytes.
const maxRefusal = 256 << 10

// scrubRefusal removes the credentials from an error answer. Clients show its beginning, and Helm stores it; if a
// client cut it off first, a part of a credential would not be recognised any more.
func scrubRefusal(response *http.Response, secrets *redact.Secrets) error {
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()

	if err != nil {
		return fmt.Errorf("read the answer, which is an error (%d): %w", response.StatusCode, err)
	}

	scrubbed := []byte(secrets.Remove(string(text)))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(scrubbed)), int64(len(scrubbed))

	return nil
}
