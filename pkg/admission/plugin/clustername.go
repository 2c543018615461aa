package plugin

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// ClusterNamePlugin is the plugin's name in the admission flags.
const ClusterNamePlugin = "OmniClusterName"

// ClusterName refuses a new OmniCluster if another one claims its effective name on the same connection.
//
// It is best effort: it reads a cache that may be milliseconds old, and allows everything while that cache fills. If two such
// OmniClusters get through, the controller stalls the younger one.
type ClusterName struct {
	*admission.Handler

	claims Index[*v1alpha1.OmniCluster]
}

var (
	_ admission.ValidationInterface = &ClusterName{}
	_ WantsInformers                = &ClusterName{}
)

// NewClusterName makes the plugin. Name and connection are immutable, so only creation can collide.
func NewClusterName() *ClusterName {
	return &ClusterName{Handler: admission.NewHandler(admission.Create)}
}

// SetInformers has the claims of OmniClusters indexed, and the rest of each object stripped from memory.
func (p *ClusterName) SetInformers(factory externalversions.SharedInformerFactory) {
	p.claims.Use(factory.Omni().V1alpha1().OmniClusters().Informer(), onlyClaim, claimsOf)
}

// ValidateInitialization fails if SetInformers was not called or had no effect.
func (p *ClusterName) ValidateInitialization() error { return p.claims.Initialized(ClusterNamePlugin) }

// Validate refuses a claim that another OmniCluster has, as invalid at spec.clusterName.
func (p *ClusterName) Validate(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != v1alpha1.Resource("omniclusters") || attributes.GetSubresource() != "" {
		return nil
	}

	cluster, ok := attributes.GetObject().(*v1alpha1.OmniCluster)
	if !ok || !p.claims.HasSynced() {
		return nil
	}

	name, connection := cluster.EffectiveClusterName(), cluster.Spec.ConnectionRef.Name

	holders, err := p.claims.By(clusterClaim(attributes.GetNamespace(), connection, name))
	if err != nil {
		return fmt.Errorf("look for OmniClusters with the same name: %w", err)
	}

	for _, holder := range holders {
		if holder.Name != cluster.Name {
			return clusterNameTaken(cluster, holder)
		}
	}

	return nil
}

func clusterNameTaken(cluster *v1alpha1.OmniCluster, holder *v1alpha1.OmniCluster) error {
	state := "already claims it"
	if holder.DeletionTimestamp != nil {
		state = "claims it until its deletion is finished"
	}

	return apierrors.NewInvalid(v1alpha1.Kind("OmniCluster"), cluster.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusterName"), cluster.EffectiveClusterName(), fmt.Sprintf(
			"OmniCluster %q %s on connection %q; set another name", holder.Name, state, cluster.Spec.ConnectionRef.Name)),
	})
}

func clusterClaim(namespace, connection, name string) string {
	return strings.Join([]string{namespace, connection, name}, "/")
}

func claimsOf(cluster *v1alpha1.OmniCluster) []string {
	return []string{clusterClaim(cluster.Namespace, cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())}
}

// onlyClaim keeps what the plugin reads: patches and manifests can be large.
func onlyClaim(cluster *v1alpha1.OmniCluster) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID,
			ResourceVersion: cluster.ResourceVersion, DeletionTimestamp: cluster.DeletionTimestamp,
		},
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: cluster.Spec.ConnectionRef, ClusterName: cluster.Spec.ClusterName,
		},
	}
}
