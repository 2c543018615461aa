package plugin

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// ControlPlaneCountPlugin is the plugin's name in the admission flags.
const ControlPlaneCountPlugin = "OmniControlPlaneCount"

// ControlPlaneCount warns of a second OmniControlPlane for one cluster, when it is created or begins to name that cluster.
// It does not refuse it: replacing a control plane by another object is a legitimate way to work, and the controller stalls the
// cluster as long as there are two.
type ControlPlaneCount struct {
	*admission.Handler

	controlPlanes Index[*v1alpha1.OmniControlPlane]
}

var (
	_ admission.ValidationInterface = &ControlPlaneCount{}
	_ WantsInformers                = &ControlPlaneCount{}
)

// NewControlPlaneCount makes the plugin.
func NewControlPlaneCount() *ControlPlaneCount {
	return &ControlPlaneCount{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetInformers has OmniControlPlanes indexed by cluster, and the rest of each object stripped from memory.
func (p *ControlPlaneCount) SetInformers(factory externalversions.SharedInformerFactory) {
	p.controlPlanes.Use(factory.Omni().V1alpha1().OmniControlPlanes().Informer(), onlyReference, clusterOf)
}

// ValidateInitialization fails if SetInformers was not called or had no effect.
func (p *ControlPlaneCount) ValidateInitialization() error {
	return p.controlPlanes.Initialized(ControlPlaneCountPlugin)
}

// Validate never refuses; it adds a warning to the answer.
func (p *ControlPlaneCount) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != v1alpha1.Resource("omnicontrolplanes") || attributes.GetSubresource() != "" {
		return nil
	}

	controlPlane, ok := attributes.GetObject().(*v1alpha1.OmniControlPlane)
	if !ok || !p.controlPlanes.HasSynced() {
		return nil
	}

	cluster := controlPlane.Spec.ClusterRef.Name

	if old, ok := attributes.GetOldObject().(*v1alpha1.OmniControlPlane); ok && old.Spec.ClusterRef.Name == cluster {
		return nil // whoever made it that of a second one was warned
	}

	others, err := p.controlPlanes.By(attributes.GetNamespace() + "/" + cluster)
	if err != nil {
		return fmt.Errorf("look for other control planes: %w", err)
	}

	for _, first := range others {
		if first.Name == controlPlane.Name || first.DeletionTimestamp != nil {
			continue
		}

		warning.AddWarning(ctx, "", secondControlPlane(first.Name))

		return nil
	}

	return nil
}

// maxWarning is the length beyond which clients cut a warning off.
const maxWarning = 120

// secondControlPlane leaves the other object's name out where it makes the warning too long.
func secondControlPlane(other string) string {
	text := fmt.Sprintf("spec.clusterRef.name: OmniControlPlane %q names this cluster too: it stalls until one is deleted", other)
	if len(text) <= maxWarning {
		return text
	}

	return "spec.clusterRef.name: another OmniControlPlane names this cluster too: it stalls until one is deleted"
}

func clusterOf(controlPlane *v1alpha1.OmniControlPlane) []string {
	return []string{controlPlane.Namespace + "/" + controlPlane.Spec.ClusterRef.Name}
}

// onlyReference keeps what the plugin reads.
func onlyReference(controlPlane *v1alpha1.OmniControlPlane) *v1alpha1.OmniControlPlane {
	return &v1alpha1.OmniControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Name: controlPlane.Name, Namespace: controlPlane.Namespace, UID: controlPlane.UID,
			ResourceVersion: controlPlane.ResourceVersion, DeletionTimestamp: controlPlane.DeletionTimestamp,
		},
		Spec: v1alpha1.OmniControlPlaneSpec{ClusterRef: controlPlane.Spec.ClusterRef},
	}
}
