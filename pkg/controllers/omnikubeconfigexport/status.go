package omnikubeconfigexport

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// report writes the content of the Secret into the status, so that a status that was lost comes back the same. If
// nothing was stored, the last one stays.
func (r *reconciler) report(_ context.Context, s *scope) {
	if !s.stored || !s.found.intact {
		return
	}

	status := &s.export.Status
	status.ClusterName = s.shape.cluster

	// Only the status knows a former target in a namespace that is not served any more: it stays named until it is gone.
	if s.onlyTarget || status.TargetSecretRef == nil {
		status.TargetSecretRef = &v1alpha1.TargetSecretReference{
			Name: s.secret.Name, Namespace: elsewhere(s.export, s.secret.Namespace), Key: s.shape.mainKey(),
		}
	}

	status.KubeconfigHash = s.found.hash
	status.ExpirationTime = new(words.StoredTime(s.found.claims.expires()))
	status.LastRotationTime = new(words.StoredTime(s.found.rotated))
	status.NextRotationTime = new(words.StoredTime(s.lifetime(s.found).nextRotation(r.options.Now())))
}

// measure updates the metrics of an export.
func (r *reconciler) measure(export *v1alpha1.OmniKubeconfigExport) {
	name := client.ObjectKeyFromObject(export)

	var expires, due time.Time
	if export.Status.ExpirationTime != nil {
		expires = export.Status.ExpirationTime.Time
	}

	if export.Status.NextRotationTime != nil {
		due = export.Status.NextRotationTime.Time
	}

	r.options.Objects.SetInfo(metrics.Object{Kind: kindName, NamespacedName: name}, export.Status.Conditions, export.Spec.ClusterRef.Name)
	r.options.Kubeconfigs.SetExpiration(name, expires)
	r.options.Kubeconfigs.SetRenewal(name, due)
}
