package omniconnection

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// omniPause is how long to wait before an Omni that did not answer is tried again; jitter keeps the connections of
// many namespaces to one Omni apart.
const omniPause = 10 * time.Second

// explainCall converts the error of a call into the outcome for the user. What Omni says of a key that it does not accept it says
// of a wrong clock, too.
func (r *reconciler) explainCall(endpoint string, err error) loop.Outcome {
	class, message := omni.Classify(err), omni.Message(err)

	if class == omni.ClassUnauthenticated || class == omni.ClassKeyExpired {
		if differ := r.options.Skew.Now(); differ.TooLarge() {
			message += fmt.Sprintf("; %s: mend that before you change the key", differ)
		}
	}

	return explain(class, endpoint, message)
}

// explain converts the class of a failure into the outcome for the user. A failure that ends by itself waits; the
// others need a person.
func explain(class omni.Class, endpoint, message string) loop.Outcome {
	switch class {
	case omni.ClassTLS:
		return loop.Stall(v1alpha1.ReasonTLSFailed, "%s: %s; check spec.caBundle", endpoint, message)
	case omni.ClassUnauthenticated:
		return loop.Stall(v1alpha1.ReasonUnauthenticated, "%s: %s", endpoint, message)
	case omni.ClassDenied:
		return loop.Stall(v1alpha1.ReasonPermissionDenied, "%s: %s", endpoint, message)
	case omni.ClassKeyExpired:
		return loop.Stall(v1alpha1.ReasonKeyExpired, "%s", message)
	case omni.ClassKeyNotYetValid:
		return loop.Wait(limiter.Jitter(omniPause), v1alpha1.ReasonClockSkew, "%s", message)
	case omni.ClassKeyInvalid:
		return loop.Stall(v1alpha1.ReasonKeyInvalid, "%s", message)
	case omni.ClassRefused:
		return loop.Stall(v1alpha1.ReasonRefused, "%s: %s", endpoint, message)
	case omni.ClassTooMuchData:
		return tooMuch(endpoint, message)
	case omni.ClassTooOld:
		return loop.Stall(v1alpha1.ReasonTooOld, "%s: %s", endpoint, message)
	default:
		return loop.Wait(limiter.Jitter(omniPause), v1alpha1.ReasonUnreachable, "%s: %s", endpoint, message)
	}
}

// tooMuch returns the outcome for an Omni that sent more than the copy may hold. The message names the bound.
func tooMuch(endpoint, message string) loop.Outcome {
	return loop.Stall(v1alpha1.ReasonTooMuchData, "%s: %s. The connection was closed; it is tried again after %s, or when it changes. "+
		"If this Omni is right, raise the bound and the memory limit of omni-controller", endpoint, message, session.TooMuchDataPause)
}

// explainHealth returns why the local copy of Omni's resources is not complete. The copy repairs itself; only a failure
// that no repetition can end is a stall.
func explainHealth(endpoint string, health mirror.Health) loop.Outcome {
	switch health.Class {
	case omni.ClassTooMuchData:
		return tooMuch(endpoint, health.Message)
	case omni.ClassNotReady:
		return loop.Wait(0, v1alpha1.ReasonMirrorNotSynced, "%s", health.Message)
	case omni.ClassDenied:
		return loop.Stall(v1alpha1.ReasonPermissionDenied, "%s", health.Message)
	case omni.ClassUnauthenticated:
		return loop.Stall(v1alpha1.ReasonUnauthenticated, "%s", health.Message)
	default:
		return loop.Wait(limiter.Jitter(omniPause), v1alpha1.ReasonWatchLost, "%s", health.Message)
	}
}

// report writes the result of a run into the status. Earlier results stay while nothing new is known.
func report(_ context.Context, s *scope) {
	status := &s.connection.Status

	if s.endpoint != "" {
		if status.Endpoint != s.endpoint {
			status.Access, status.Omni = nil, nil // they were those of another Omni
		}

		status.Endpoint = s.endpoint
	}

	if s.access != nil {
		status.Access = s.access
	}

	if s.version != (omni.Version{}) {
		status.Omni = &v1alpha1.OmniServerStatus{Version: s.version.Text, APIVersion: int64(s.version.API), Instance: s.version.Instance}
	}

	if s.reported == nil {
		return
	}

	account := &v1alpha1.OmniServiceAccountStatus{Name: s.key.Name()}
	if !s.reported.IsZero() {
		account.ExpirationTime = new(words.StoredTime(*s.reported))
	}

	status.ServiceAccount = account
}

// versionCondition says whether the version of Omni was tried. It stays while Omni is not asked, and goes when Omni is too
// old: the condition Reachable says that.
func versionCondition(s *scope) []loop.TransientCondition {
	condition := loop.TransientCondition{Condition: v1alpha1.ConditionOmniVersion, On: true, Reason: v1alpha1.ReasonSupported}

	switch version := fmt.Sprintf("Omni %s, API %d", s.version.Text, s.version.API); {
	case s.tooOld:
		condition.On = false
	case s.version == (omni.Version{}):
		return nil
	case s.version.IsNewer():
		condition.Reason = v1alpha1.ReasonNewer
		condition.Message = version + ": newer than what this release was tried with, see docs/reference/versions.md"
	case s.version.IsOlder():
		condition.Message = version + ": serves what is needed, and was not tried, see docs/reference/versions.md"
	default:
		condition.Message = version
	}

	return []loop.TransientCondition{condition}
}

// measure updates the metrics of a connection.
func (r *reconciler) measure(connection *v1alpha1.OmniConnection) {
	name := client.ObjectKeyFromObject(connection)

	var expires time.Time
	if account := connection.Status.ServiceAccount; account != nil && account.ExpirationTime != nil {
		expires = account.ExpirationTime.Time
	}

	r.options.Objects.SetInfo(metrics.Object{Kind: kindName, NamespacedName: name}, connection.Status.Conditions, "")
	r.options.Objects.SetExpiration(name, expires)
	r.options.Objects.SetServer(name, connection.Status.Omni)
}

func shownExpiry(expires time.Time) string {
	if expires.IsZero() {
		return " does not expire"
	}

	return " expires at " + words.Time(expires)
}
