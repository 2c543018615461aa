package omnikubeconfigexport

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// found is the content of our Secret.
type found struct {
	intact   bool // it holds what was written
	recorded bool // the status has the hash of it
	access   access
	claims   claims
	hash     string // of the kubeconfig
	specHash string // of what it was made from
	rotated  time.Time

	labels, annotations map[string]string
}

// inspect reads our Secret. A Secret that somebody else changed is not intact, whatever its annotations say: they can
// be changed as well, so the token must also match them.
func inspect(secret *corev1.Secret, of shape) found {
	changed := found{specHash: secret.Annotations[v1alpha1.AnnotationSpecHash], labels: secret.Labels, annotations: secret.Annotations}
	result := changed

	if result.hash = of.hash(secret.Data); secret.Annotations[v1alpha1.AnnotationKubeconfigHash] != result.hash {
		return changed
	}

	var err error
	if result.access, err = of.read(secret.Data); err != nil {
		return changed
	}

	if result.claims, err = readToken(result.access.token); err != nil {
		return changed
	}

	// Without the time of the last rotation, the token's time is used.
	result.rotated = time.Unix(result.claims.Issued, 0).UTC()
	if written, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationLastRotationTime]); err == nil {
		result.rotated = written.UTC()
	}

	result.intact = true

	return result
}
