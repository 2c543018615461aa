package exporttarget

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
	listers "omni.texashpc.com/omni-cluster-operator/pkg/generated/listers/omni/v1alpha1"
)

// elsewhereIndex is the index of the exports that have written a Secret in another namespace, by their own.
const elsewhereIndex = "elsewhere"

// sources finds what exports write, and from which OmniConnection.
type sources struct {
	exports  cache.SharedIndexInformer
	clusters listers.OmniClusterLister
	synced   cache.InformerSynced // all of it is known
	err      error
}

// useInformers adds an index to the informer of OmniKubeconfigExports, and strips the rest of each object from memory.
func (s *sources) useInformers(factory externalversions.SharedInformerFactory) {
	omni := factory.Omni().V1alpha1()
	clusters := omni.OmniClusters()
	s.exports, s.clusters = omni.OmniKubeconfigExports().Informer(), clusters.Lister()
	s.synced = func() bool { return s.exports.HasSynced() && clusters.Informer().HasSynced() }
	s.err = errors.Join(
		s.exports.SetTransform(onlyTarget),
		s.exports.AddIndexers(cache.Indexers{elsewhereIndex: elsewhere}),
	)
}

// initialized fails if useInformers was not called or had no effect.
func (s *sources) initialized() error {
	if s.exports == nil {
		return fmt.Errorf("%s has no informers", PluginName)
	}

	return s.err
}

// writtenElsewhere returns the exports of a namespace that have written a Secret in another one.
func (s *sources) writtenElsewhere(namespace string) ([]*v1alpha1.OmniKubeconfigExport, error) {
	found, err := s.exports.GetIndexer().ByIndex(elsewhereIndex, namespace)
	if err != nil {
		return nil, fmt.Errorf("look for exports into other namespaces: %w", err)
	}

	exports := make([]*v1alpha1.OmniKubeconfigExport, 0, len(found))
	for _, export := range found {
		exports = append(exports, export.(*v1alpha1.OmniKubeconfigExport)) //nolint:forcetypeassert // the informer's own kind
	}

	return exports, nil
}

// connectionOf returns the connection of an OmniCluster; empty if that does not exist. Then its creation is asked about.
func (s *sources) connectionOf(namespace, cluster string) string {
	found, err := s.clusters.OmniClusters(namespace).Get(cluster)
	if err != nil {
		return ""
	}

	return found.Spec.ConnectionRef.Name
}

func elsewhere(obj any) ([]string, error) {
	export, ok := obj.(*v1alpha1.OmniKubeconfigExport)
	if !ok {
		return nil, fmt.Errorf("%T is not an OmniKubeconfigExport", obj)
	}

	if target := export.Status.TargetSecretRef; target == nil || target.Namespace == "" || target.Namespace == export.Namespace {
		return nil, nil
	}

	return []string{export.Namespace}, nil
}

// onlyTarget keeps what the plugin reads.
func onlyTarget(obj any) (any, error) {
	export, ok := obj.(*v1alpha1.OmniKubeconfigExport)
	if !ok {
		return obj, nil
	}

	return &v1alpha1.OmniKubeconfigExport{
		ObjectMeta: metav1.ObjectMeta{Name: export.Name, Namespace: export.Namespace, UID: export.UID, ResourceVersion: export.ResourceVersion},
		Spec:       v1alpha1.OmniKubeconfigExportSpec{ClusterRef: export.Spec.ClusterRef},
		Status:     v1alpha1.OmniKubeconfigExportStatus{TargetSecretRef: export.Status.TargetSecretRef},
	}, nil
}
