package omnikubeconfigexport

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// correction is what was written again over a Secret that somebody changed, and when.
type correction struct {
	what correctedTo
	at   time.Time
}

// correctedTo identifies what was written. It changes with the object, its target and its kubeconfig.
type correctedTo struct {
	uid        types.UID
	generation int64
	target     types.NamespacedName
	hash       string
}

func (s *scope) correctedTo(want *corev1.Secret) correctedTo {
	return correctedTo{
		uid: s.export.UID, generation: s.export.Generation, target: client.ObjectKeyFromObject(want),
		hash: want.Annotations[v1alpha1.AnnotationKubeconfigHash],
	}
}

// rewritePause returns how long to wait before the target is corrected to the same again. A Secret that is missing and a new
// kubeconfig do not wait; how many are issued has a limit of its own.
func (r *reconciler) rewritePause(s *scope, want *corev1.Secret) time.Duration {
	known, _ := r.corrections.Load(client.ObjectKeyFromObject(s.export))

	last, ok := known.(correction)
	if !ok || s.secret == nil || s.fresh != nil || last.what != s.correctedTo(want) || apiequality.Semantic.DeepEqual(s.secret, want) {
		return 0
	}

	return loop.RewritePause(s.export, last.at, r.options.Now())
}

// difference names the parts in which a Secret is not as it has to be.
func difference(has, want *corev1.Secret) string {
	var parts []string

	for _, part := range []struct {
		name      string
		has, want any
	}{
		{"data", has.Data, want.Data}, {"labels", has.Labels, want.Labels}, {"annotations", has.Annotations, want.Annotations},
		{"type", has.Type, want.Type}, {"immutable", has.Immutable, want.Immutable},
	} {
		if !apiequality.Semantic.DeepEqual(part.has, part.want) {
			parts = append(parts, part.name)
		}
	}

	return strings.Join(parts, ", ")
}
