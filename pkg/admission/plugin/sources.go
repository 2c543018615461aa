package plugin

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
	listers "omni.texashpc.com/omni-cluster-operator/pkg/generated/listers/omni/v1alpha1"
)

// sources finds what exports write, and from which OmniConnection.
type sources struct {
	exports  Index[*v1alpha1.OmniKubeconfigExport] // those that have written a Secret in another namespace, by their own
	clusters listers.OmniClusterLister
	synced   cache.InformerSynced // all of it is known
}

// useInformers has OmniKubeconfigExports indexed, and the rest of each object stripped from memory.
func (s *sources) useInformers(factory externalversions.SharedInformerFactory) {
	omni := factory.Omni().V1alpha1()
	clusters := omni.OmniClusters()
	s.exports.Use(omni.OmniKubeconfigExports().Informer(), onlyTarget, elsewhere)
	s.clusters = clusters.Lister()
	s.synced = func() bool { return s.exports.HasSynced() && clusters.Informer().HasSynced() }
}

// writtenElsewhere returns the exports of a namespace that have written a Secret in another one.
func (s *sources) writtenElsewhere(namespace string) ([]*v1alpha1.OmniKubeconfigExport, error) {
	exports, err := s.exports.By(namespace)
	if err != nil {
		return nil, fmt.Errorf("look for exports into other namespaces: %w", err)
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

func elsewhere(export *v1alpha1.OmniKubeconfigExport) []string {
	if target := export.Status.TargetSecretRef; target == nil || target.Namespace == "" || target.Namespace == export.Namespace {
		return nil
	}

	return []string{export.Namespace}
}

// onlyTarget keeps what the plugin reads.
func onlyTarget(export *v1alpha1.OmniKubeconfigExport) *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{
		ObjectMeta: metav1.ObjectMeta{Name: export.Name, Namespace: export.Namespace, UID: export.UID, ResourceVersion: export.ResourceVersion},
		Spec:       v1alpha1.OmniKubeconfigExportSpec{ClusterRef: export.Spec.ClusterRef},
		Status:     v1alpha1.OmniKubeconfigExportStatus{TargetSecretRef: export.Status.TargetSecretRef},
	}
}
