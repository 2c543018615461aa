package index

import (
	"context"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// lookupTimeout bounds a list of the cache, which waits until the cache is filled: the context of an event has no deadline of
// its own.
const lookupTimeout = 10 * time.Second

// Each calls do for each object of the list's kind that the options select, as the cache has them; do may only read it, as
// it is the cache's own. It calls nothing if the cache cannot be read: the objects are reconciled at their interval.
func Each[O client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, do func(O), options ...client.ListOption) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	if err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return
	}

	_ = apimeta.EachListItem(list, func(item runtime.Object) error { // it returns what the function does
		if object, ok := item.(O); ok {
			do(object)
		}

		return nil
	})
}

// Requests returns a request for each object of the list's kind that the options select, as Each finds them.
func Requests(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	var requests []reconcile.Request

	Each(ctx, cache, list, func(object client.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}, options...)

	return requests
}

// OfConnection returns a function for the events of OmniConnections: it returns what ofCluster does for the clusters of a
// connection, as the cache has them.
func OfConnection(cache client.Reader, ofCluster handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, connection client.Object) []reconcile.Request {
		var requests []reconcile.Request

		Each(ctx, cache, &v1alpha1.OmniClusterList{}, func(cluster *v1alpha1.OmniCluster) {
			requests = append(requests, ofCluster(ctx, cluster)...)
		}, client.InNamespace(connection.GetNamespace()), client.MatchingFields{ByConnection: connection.GetName()})

		return requests
	}
}

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
