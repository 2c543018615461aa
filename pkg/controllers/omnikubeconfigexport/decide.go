package omnikubeconfigexport

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// ownership says whose a Secret is.
type ownership int

const (
	absent ownership = iota
	ours
	// others belongs to another export, or to nobody we know.
	others
	// otherHubs is this export's in another hub.
	otherHubs
)

// last is what the status says that was written.
type last struct {
	target types.NamespacedName
	hash   string
}

func lastOf(export *v1alpha1.OmniKubeconfigExport) last {
	return last{target: export.WrittenTarget(), hash: export.Status.KubeconfigHash}
}

// judgeOwner decides whose the target is. The mark decides; only where the label
// was taken off is the content a proof: nobody else knows that kubeconfig.
func judgeOwner(secret *corev1.Secret, uid types.UID, of shape, written last, accepted hubs.Hubs) ownership {
	if secret == nil {
		return absent
	}

	other := !accepted.Ours(secret.Labels[v1alpha1.MarkHub])

	switch {
	case marked(secret, uid, written.target) && other:
		return otherHubs
	case marked(secret, uid, written.target):
		return ours
	case !other && secret.Labels[v1alpha1.LabelExportUID] == "" && written.hash != "" && written.target == keyOf(secret) && of.hash(secret.Data) == written.hash:
		return ours
	default:
		return others
	}
}

// marked reports whether a Secret carries the mark of an export and is no copy: one
// that somebody made under another name carries the label as well. The status
// (written; empty if nothing was) counts like the annotation, which can be lost.
func marked(secret metav1.Object, uid types.UID, written types.NamespacedName) bool {
	if uid == "" || secret.GetLabels()[v1alpha1.LabelExportUID] != string(uid) {
		return false
	}

	as := secret.GetAnnotations()[v1alpha1.AnnotationExportSecret]

	return as == keyOf(secret).String() || written == keyOf(secret) || as == "" && written.Name == ""
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// lacksOnlyMarks reports whether a Secret that is there lacks marks and else is as wanted: it was written before a mark
// named the hub or the cluster, or by a hub that was taken over.
func lacksOnlyMarks(has, want *corev1.Secret) bool {
	if has == nil || has.Labels[v1alpha1.LabelExportUID] == "" {
		return false
	}

	completed := has.DeepCopy()

	for _, label := range []string{v1alpha1.MarkHub, v1alpha1.LabelCluster} {
		if value, ok := want.Labels[label]; ok {
			completed.Labels[label] = value
		}
	}

	return !apiequality.Semantic.DeepEqual(has, want) && apiequality.Semantic.DeepEqual(completed, want)
}

// found is what a Secret of ours holds.
type found struct {
	intact   bool // it holds what was written
	access   access
	claims   claims
	hash     string // of the kubeconfig
	specHash string // of what it was made from
	rotated  time.Time
}

// inspect reads a Secret of ours. What was changed by somebody else is not
// intact, whatever the annotations say: they can be changed as well, so the
// token must also fit them.
func inspect(secret *corev1.Secret, of shape) found {
	result := found{hash: of.hash(secret.Data), specHash: secret.Annotations[v1alpha1.AnnotationSpecHash]}
	if secret.Annotations[v1alpha1.AnnotationKubeconfigHash] != result.hash {
		return found{specHash: result.specHash}
	}

	var err error
	if result.access, err = of.read(secret.Data); err != nil {
		return found{specHash: result.specHash}
	}

	if result.claims, err = readToken(result.access.token); err != nil {
		return found{specHash: result.specHash}
	}

	// Without the time of the last rotation it is the time of the token.
	result.rotated = time.Unix(result.claims.Issued, 0).UTC()
	if written, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationLastRotationTime]); err == nil {
		result.rotated = written.UTC()
	}

	result.intact = true

	return result
}

// cause is why a new kubeconfig is needed.
type cause string

// The causes, in words for events.
const (
	causeNone     cause = ""
	causeFirst    cause = "there was none"
	causeChanged  cause = "what it is made from changed"
	causeTampered cause = "the Secret was changed by somebody else"
	causeDue      cause = "its renewal was due"
	causeExpired  cause = "it had expired"
)

// oddLife is how much longer than its ttl a token may seem to live, for clocks that
// differ. One that seems to live longer is forged: it would never be renewed, and
// a year beyond 9999 does not fit into a status.
const oddLife = 24 * time.Hour

// need decides whether a new kubeconfig is needed.
func need(owner ownership, is found, want ingredients, next, now time.Time) cause {
	switch {
	case owner == absent:
		return causeFirst
	case is.specHash != want.hash():
		return causeChanged
	case !is.intact, !is.claims.fits(want), is.claims.expires().After(now.Add(want.ttl() + oddLife)):
		return causeTampered
	case !now.Before(is.claims.expires()):
		return causeExpired
	case !now.Before(next):
		return causeDue
	default:
		return causeNone
	}
}

// keeps reports whether the old kubeconfig still does its work when a new one is
// not to be had.
func (c cause) keeps() bool { return c == causeDue }

// fits reports whether a token is for whom and what it should be for.
func (c claims) fits(want ingredients) bool {
	return c.User == want.User && c.ClusterUUID == want.ClusterID &&
		slices.Equal(slices.Sorted(slices.Values(c.Groups)), slices.Sorted(slices.Values(want.Groups)))
}
