package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// StoreIn makes the server keep the objects of every kind in a storage of the caller's, such as that of an etcd in this
// process. The other options of the storage stay: the endpoint of etcd is for the health checks.
func StoreIn(config *genericapiserver.Config, storage generic.StorageDecorator) {
	config.RESTOptionsGetter = decorated{config.RESTOptionsGetter, storage}
}

// decorated returns the options of a getter with another storage.
type decorated struct {
	generic.RESTOptionsGetter

	storage generic.StorageDecorator
}

// GetRESTOptions returns the options of a kind.
func (d decorated) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.Decorator = d.storage

	return options, err
}
