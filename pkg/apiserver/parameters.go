package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
)

// WatchParametersApart is the factory for the admission plugins: all of the given one but informers of kinds that the plugins
// do not know by themselves, which are those of the parameters of admission policies.
//
// A server is ready when all informers of its factory have their lists. The library would add one for the parameters of every
// policy of the hub, ours to apply or not, and never take it away. This server has no right to watch ConfigMaps and the like,
// so that one policy with parameters would make it not ready, and take the API from everybody, until it is restarted
// without the policy. The plugins watch a kind for which the factory has nothing by themselves, as long as a policy needs it.
func WatchParametersApart(factory informers.SharedInformerFactory) informers.SharedInformerFactory {
	return withoutParameters{factory}
}

type withoutParameters struct {
	informers.SharedInformerFactory
}

// ForResource has nothing for any kind: plugins ask for the kinds that they know in other ways.
func (withoutParameters) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("parameters (%s) are watched apart", resource.GroupResource())
}
