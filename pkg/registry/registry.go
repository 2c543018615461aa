// Package registry puts all kinds together: one storage each, made by
// pkg/registry/internal/kit from the descriptors in pkg/registry/omni. pkg/apiserver installs the
// result.
package registry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omniconnection"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnicontrolplane"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnihelmrelease"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnikubeconfigexport"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnimachine"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnirolloutpolicy"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnisecretsync"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omniworkers"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// Options are an operator's choices about the kinds.
type Options struct {
	// RequireDeletionConfirmation is the meaning of an unset spec.deletePolicy.requireConfirmation of an OmniCluster.
	RequireDeletionConfirmation bool
	// ManagementClusterName is the name of this management cluster in the ownership mark of a rendered template.
	ManagementClusterName string
	// HubID is the ID of this hub in that mark.
	HubID string
}

// kind is a descriptor without its type parameter.
type kind struct {
	addFieldLabels func(*runtime.Scheme) error
	newStorage     func(*runtime.Scheme, generic.RESTOptionsGetter) (*kit.Storage, error)
	resource       string
	object         runtime.Object // an empty one
}

func kindOf[T kit.Object](descriptor *kit.Descriptor[T]) kind {
	return kind{
		resource: descriptor.Plural, object: descriptor.New(),
		addFieldLabels: descriptor.AddFieldLabels,
		newStorage: func(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*kit.Storage, error) {
			return kit.NewStorage(descriptor, scheme, getter)
		},
	}
}

// late is a store that is made after the kinds that read it.
type late struct{ *kit.REST }

func kinds(options Options, clusters kit.Clusters) []kind {
	return []kind{
		kindOf(omniconnection.Descriptor(time.Now, clusters)),
		kindOf(omnicluster.Descriptor(options.RequireDeletionConfirmation)),
		kindOf(omnicontrolplane.Descriptor()),
		kindOf(omniworkers.Descriptor()),
		kindOf(omnimachine.Descriptor()),
		kindOf(omnikubeconfigexport.Descriptor(time.Now)),
		kindOf(omnisecretsync.Descriptor(time.Now)),
		kindOf(omnihelmrelease.Descriptor()),
		kindOf(omnirolloutpolicy.Descriptor(time.Now, clusters)),
	}
}

// AddFieldLabels registers in the scheme which field selectors each kind supports. It fails only if the scheme does
// not know the kinds.
func AddFieldLabels(scheme *runtime.Scheme) error {
	for _, kind := range kinds(Options{}, nil) {
		if err := kind.addFieldLabels(scheme); err != nil {
			return err
		}
	}

	return nil
}

// Objects returns an empty object of each kind, by resource.
func Objects() map[string]runtime.Object {
	objects := map[string]runtime.Object{}
	for _, kind := range kinds(Options{}, nil) {
		objects[kind.resource] = kind.object
	}

	return objects
}

// WithCreation stores the body of a create request, as JSON, in the context. The creator owns the fields that this
// body sets to false; the decoded object does not show which those are.
func WithCreation(ctx context.Context, body []byte) context.Context {
	return kit.WithCreation(ctx, body)
}

// NewStorage makes the storage of all kinds and their subresources, by resource path ("omniclusters",
// "omniclusters/status", ...). The ledger bounds how much is stored; nil means no bound. Errors come from the storage
// configuration.
func NewStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, options Options, ledger *quota.Ledger) (map[string]rest.Storage, error) {
	served := map[string]rest.Storage{}
	main := map[string]*kit.REST{}
	clusters := &late{}

	for _, kind := range kinds(options, clusters) {
		storage, err := kind.newStorage(scheme, getter)
		if err != nil {
			Destroy(served)

			return nil, err
		}

		storage.LimitBy(ledger)
		storage.AddTo(served)
		main[storage.Plural] = storage.Main
	}

	clusters.REST = main["omniclusters"]
	served["omniclusters/template"] = omnicluster.NewTemplateREST(omnicluster.TemplateSources{
		Clusters:      main["omniclusters"],
		ControlPlanes: main["omnicontrolplanes"],
		Workers:       main["omniworkers"],
		Machines:      main["omnimachines"],
	}, template.Hub{ID: options.HubID, Name: options.ManagementClusterName})

	return served, nil
}

// Destroy ends the storage that NewStorage made.
func Destroy(served map[string]rest.Storage) {
	for _, storage := range served {
		storage.Destroy()
	}
}

// Sources returns the stores of all kinds among the given storage, by resource.
func Sources(served map[string]rest.Storage) map[string]quota.Source {
	sources := map[string]quota.Source{}

	for path, storage := range served {
		if main, ok := storage.(*kit.REST); ok {
			sources[path] = main
		}
	}

	return sources
}
