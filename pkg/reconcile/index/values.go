package index

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// valuesOf returns the sources that an object refers to in a valueFrom.
func valuesOf(object client.Object) []v1alpha1.ValueSource {
	switch o := object.(type) {
	case *v1alpha1.OmniCluster:
		sources := patchValues(o.Spec.Patches)

		for _, manifest := range o.Spec.Kubernetes.Manifests {
			if manifest.ValueFrom != nil {
				sources = append(sources, *manifest.ValueFrom)
			}
		}

		return sources
	case *v1alpha1.OmniControlPlane:
		return patchValues(o.Spec.Patches)
	case *v1alpha1.OmniWorkers:
		return patchValues(o.Spec.Patches)
	case *v1alpha1.OmniMachine:
		return patchValues(o.Spec.Patches)
	}

	return nil
}

func patchValues(patches []v1alpha1.Patch) []v1alpha1.ValueSource {
	var sources []v1alpha1.ValueSource

	for _, patch := range patches {
		if patch.ValueFrom != nil {
			sources = append(sources, *patch.ValueFrom)
		}
	}

	return sources
}

func configMapsOf(sources []v1alpha1.ValueSource) []string {
	return names(sources, func(s v1alpha1.ValueSource) *v1alpha1.KeyReference { return s.ConfigMapKeyRef })
}

func secretsOf(sources []v1alpha1.ValueSource) []string {
	return names(sources, func(s v1alpha1.ValueSource) *v1alpha1.KeyReference { return s.SecretKeyRef })
}

func names(sources []v1alpha1.ValueSource, member func(v1alpha1.ValueSource) *v1alpha1.KeyReference) []string {
	var found []string

	for _, source := range sources {
		if ref := member(source); ref != nil {
			found = append(found, ref.Name)
		}
	}

	slices.Sort(found)

	return slices.Compact(found)
}
