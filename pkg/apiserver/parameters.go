package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
)

// WatchParametersApart wraps the informer factory of the admission plugins: it hides informers of kinds that the
// plugins look up generically, which are the kinds of admission policies' parameters.
//
// A server is ready when all informers of its factory have their lists. The library would add one informer for the
// parameters of every policy of the hub, whether or not the policy applies to our kinds, and never remove it. This
// server has no right to watch ConfigMaps and the like. So one policy with parameters would make the server not
// ready, and take the API from everybody, until the server is restarted without that policy. If the factory has no
// informer for a kind, the plugins watch that kind themselves, as long as a policy needs it.
func WatchParametersApart(factory informers.SharedInformerFactory) informers.SharedInformerFactory {
	return withoutParameters{factory}
}

type withoutParameters struct {
	informers.SharedInformerFactory
}

// ForResource fails for every kind: the plugins ask for the kinds that they know by other methods.
func (withoutParameters) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("parameters (%s) are watched apart", resource.GroupResource())
}
