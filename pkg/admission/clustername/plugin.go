package clustername

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// PluginName is the plugin's name in the admission flags.
const PluginName = "OmniClusterName"

const claimIndex = "claim"

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses a new OmniCluster if another one claims its effective name on the same connection.
type Plugin struct {
	*admission.Handler

	informer cache.SharedIndexInformer
	err      error
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsInformers    = &Plugin{}
)

// New makes the plugin. Name and connection are immutable, so only creation can collide.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// SetInformers adds an index of the claims to the informer of OmniClusters, and strips the rest of
// each object from memory.
func (p *Plugin) SetInformers(factory externalversions.SharedInformerFactory) {
	p.informer = factory.Omni().V1alpha1().OmniClusters().Informer()
	p.err = errors.Join(
		p.informer.SetTransform(onlyClaim),
		p.informer.AddIndexers(cache.Indexers{claimIndex: claimsOf}),
	)
}

// ValidateInitialization fails if SetInformers was not called or had no effect.
func (p *Plugin) ValidateInitialization() error {
	if p.informer == nil {
		return fmt.Errorf("%s has no informers", PluginName)
	}

	return p.err
}

// Validate refuses a claim that another OmniCluster has, as invalid at spec.clusterName.
func (p *Plugin) Validate(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != v1alpha1.Resource("omniclusters") || attributes.GetSubresource() != "" {
		return nil
	}

	cluster, ok := attributes.GetObject().(*v1alpha1.OmniCluster)
	if !ok || !p.informer.HasSynced() {
		return nil
	}

	name, connection := cluster.EffectiveClusterName(), cluster.Spec.ConnectionRef.Name

	others, err := p.informer.GetIndexer().ByIndex(claimIndex, claim(attributes.GetNamespace(), connection, name))
	if err != nil {
		return fmt.Errorf("look for OmniClusters with the same name: %w", err)
	}

	for _, other := range others {
		if holder := other.(*v1alpha1.OmniCluster); holder.Name != cluster.Name { //nolint:forcetypeassert // the informer's own kind
			return refusal(cluster, holder)
		}
	}

	return nil
}

func refusal(cluster *v1alpha1.OmniCluster, holder *v1alpha1.OmniCluster) error {
	state := "already claims it"
	if holder.DeletionTimestamp != nil {
		state = "claims it until its deletion is finished"
	}

	return apierrors.NewInvalid(v1alpha1.Kind("OmniCluster"), cluster.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusterName"), cluster.EffectiveClusterName(), fmt.Sprintf(
			"OmniCluster %q %s on connection %q; set another name", holder.Name, state, cluster.Spec.ConnectionRef.Name)),
	})
}

func claim(namespace, connection, name string) string {
	return strings.Join([]string{namespace, connection, name}, "/")
}

func claimsOf(obj any) ([]string, error) {
	cluster, ok := obj.(*v1alpha1.OmniCluster)
	if !ok {
		return nil, fmt.Errorf("%T is not an OmniCluster", obj)
	}

	return []string{claim(cluster.Namespace, cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())}, nil
}

// onlyClaim keeps what the plugin reads: patches and manifests can be large.
func onlyClaim(obj any) (any, error) {
	cluster, ok := obj.(*v1alpha1.OmniCluster)
	if !ok {
		return obj, nil
	}

	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID,
			ResourceVersion: cluster.ResourceVersion, DeletionTimestamp: cluster.DeletionTimestamp,
		},
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: cluster.Spec.ConnectionRef, ClusterName: cluster.Spec.ClusterName,
		},
	}, nil
}
