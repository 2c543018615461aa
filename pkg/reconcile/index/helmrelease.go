package index

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ByDependency finds OmniHelmReleases by the names in spec.dependsOn.
const ByDependency = "spec.dependsOn"

// helmReleases returns the indexes over the references of OmniHelmReleases, besides their cluster and kubeconfig.
func helmReleases() []Index {
	return []Index{
		{&v1alpha1.OmniHelmRelease{}, ByValueSecret, of(secretsOfRelease)},
		{&v1alpha1.OmniHelmRelease{}, ByValueConfigMap, of(func(o *v1alpha1.OmniHelmRelease) []string {
			return valuesOfRelease(o, v1alpha1.ValuesConfigMap)
		})},
		{&v1alpha1.OmniHelmRelease{}, ByDependency, of(func(o *v1alpha1.OmniHelmRelease) []string {
			var names []string
			for _, dependency := range o.Spec.DependsOn {
				names = append(names, dependency.Name)
			}

			return names
		})},
		{&v1alpha1.OmniHelmRelease{}, ByUID, uidOf},
	}
}

// secretsOfRelease returns the Secrets with values, credentials, the certificate of the authority, and the keyring.
func secretsOfRelease(release *v1alpha1.OmniHelmRelease) []string {
	chart := &release.Spec.Chart
	found := valuesOfRelease(release, v1alpha1.ValuesSecret)

	for _, ref := range []*v1alpha1.LocalObjectReference{chart.AuthSecretRef, chart.CASecretRef} {
		if ref != nil {
			found = append(found, ref.Name)
		}
	}

	if chart.Verify != nil {
		found = append(found, chart.Verify.KeyringSecretRef.Name)
	}

	slices.Sort(found)

	return slices.Compact(found)
}

func valuesOfRelease(release *v1alpha1.OmniHelmRelease, kind v1alpha1.ValuesKind) []string {
	var found []string

	for _, ref := range release.Spec.Chart.ValuesFrom {
		if ref.Kind == kind {
			found = append(found, ref.Name)
		}
	}

	slices.Sort(found)

	return slices.Compact(found)
}
