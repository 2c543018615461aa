package controlplane

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// PluginName is the plugin's name in the admission flags.
const PluginName = "OmniControlPlaneCount"

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin warns of a second OmniControlPlane for one cluster, when it is created or begins to name that cluster.
type Plugin struct {
	*admission.Handler

	controlPlanes initializer.Index[*v1alpha1.OmniControlPlane]
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsInformers    = &Plugin{}
)

// New makes the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetInformers has OmniControlPlanes indexed by cluster, and the rest of each object stripped from memory.
func (p *Plugin) SetInformers(factory externalversions.SharedInformerFactory) {
	p.controlPlanes.Use(factory.Omni().V1alpha1().OmniControlPlanes().Informer(), onlyReference, clusterOf)
}

// ValidateInitialization fails if SetInformers was not called or had no effect.
func (p *Plugin) ValidateInitialization() error { return p.controlPlanes.Initialized(PluginName) }

// Validate never refuses; it adds a warning to the answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
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
