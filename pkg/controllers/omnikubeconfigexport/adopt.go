package omnikubeconfigexport

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// The annotations that the operator with CRDs writes on an exported Secret, besides the labels that both operators
// write.
const (
	formerName         = index.AnnotationFormerExportName
	formerNamespace    = v1alpha1.AnnotationExportNamespace
	formerSpecHash     = v1alpha1.GroupName + "/kubeconfig-export-spec-hash"
	formerExpiration   = v1alpha1.GroupName + "/kubeconfig-expiration-time"
	formerLastRotation = v1alpha1.GroupName + "/kubeconfig-last-rotation-time"
)

// adopt makes another's Secret the target, as spec.adopt asks. refused is why it does not; empty if the Secret is
// adopted. It writes nothing yet, and the kubeconfig in the Secret stays while it is the wanted one.
func (r *reconciler) adopt(ctx context.Context, s *scope) (refused string, err error) {
	owner, err := r.livingOwner(ctx, s)
	if err != nil {
		return "", err
	}

	if refused := mayAdopt(s.secret, s.export, s.shape, owner); refused != "" {
		return redact.Line(refused), nil
	}

	s.adopted = true
	s.found = adoptable(s.secret, s.shape, s.want, r.options.Now())

	return "", nil
}

// mayAdopt returns why a Secret is not adopted although spec.adopt is set; empty if it may be. Anything in the Secret
// besides a kubeconfig would be lost, and a Secret with a living owner stays with that owner. owner is the name of the
// living export in the mark.
func mayAdopt(secret *corev1.Secret, export *v1alpha1.OmniKubeconfigExport, of shape, owner string) string {
	switch writer := writerOf(secret); {
	case owner != "":
		return fmt.Sprintf("it belongs to OmniKubeconfigExport %q", owner)
	case copied(secret):
		return fmt.Sprintf("it is a copy of Secret %q that somebody made", secret.Annotations[v1alpha1.AnnotationExportSecret])
	case secret.Annotations[formerName] != "" && writer != keyOf(export):
		return fmt.Sprintf("the operator with CRDs made it for its OmniKubeconfigExport %q", writer)
	case writer.Namespace != export.Namespace:
		// This controller cannot see whether that object exists.
		return fmt.Sprintf("it was made for OmniKubeconfigExport %q", writer)
	case secret.Type != corev1.SecretTypeOpaque && secret.Type != "":
		return fmt.Sprintf("its type is %s, and that of a kubeconfig's Secret is %s", secret.Type, corev1.SecretTypeOpaque)
	case secret.Immutable != nil && *secret.Immutable:
		return "it is immutable"
	}

	if more := slices.DeleteFunc(slices.Sorted(maps.Keys(secret.Data)), of.writes); len(more) > 0 {
		return fmt.Sprintf("it holds more than a kubeconfig, and that would be lost: the keys %s", strings.Join(more, ", "))
	}

	if _, err := of.read(secret.Data); err != nil && secret.Labels[v1alpha1.LabelExportUID] == "" {
		return fmt.Sprintf("what it holds under the key %s is not a kubeconfig with one server and one bearer token", of.mainKey())
	}

	return ""
}

// writerOf returns the export that a Secret was written for, from its annotations. The operator with CRDs always writes
// the namespace; we write it if it is not the Secret's.
func writerOf(secret metav1.Object) types.NamespacedName {
	annotations := secret.GetAnnotations()

	return types.NamespacedName{
		Namespace: cmp.Or(annotations[v1alpha1.AnnotationExportNamespace], secret.GetNamespace()),
		Name:      cmp.Or(annotations[v1alpha1.AnnotationExportName], annotations[formerName]),
	}
}

// copied reports whether a Secret is a copy of an exported one, with its marks.
func copied(secret *corev1.Secret) bool {
	as := secret.Annotations[v1alpha1.AnnotationExportSecret]

	return as != "" && as != keyOf(secret).String()
}

// adoptable reads the content of another's Secret. If its kubeconfig is what this export would request, it counts as
// made for it, and its readers notice nothing.
func adoptable(secret *corev1.Secret, of shape, want ingredients, now time.Time) found {
	to, err := of.read(secret.Data)
	if err != nil {
		return found{}
	}

	token, err := readToken(to.token)
	if err != nil {
		return found{}
	}

	result := found{intact: true, access: to, claims: token, hash: of.hash(secret.Data), rotated: time.Unix(token.Issued, 0).UTC()}
	plain := of.format == v1alpha1.FormatArgoCD || of.isPlain(secret.Data[of.key])

	if plain && token.fits(want) && token.expires().Before(now.Add(want.ttl()+clockTolerance)) {
		result.specHash = want.hash()
	}

	return result
}

// forgetFormer removes the annotations of the operator with CRDs, which would describe another kubeconfig from the next
// rotation on. Its labels stay: readers may select by them.
func forgetFormer(secret *corev1.Secret) {
	for _, key := range []string{formerName, formerNamespace, formerSpecHash, formerExpiration, formerLastRotation} {
		delete(secret.Annotations, key)
	}
}

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
