package apiserver

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/clustername"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/controllernamespaces"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/controlplane"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/exporttarget"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/ownerreferences"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/references"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/rolloutoverride"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// informerResync turns resyncs off: the plugins' indexes follow the watch.
const informerResync time.Duration = 0

// NewAdmissionOptions returns the admission chain in its order: namespace lifecycle (the namespace has to exist); the
// hub's mutating policies and webhooks; its validating ones; our own plugins. Without the hub's policies and webhooks
// in the chain, they would silently not apply to our kinds.
func NewAdmissionOptions() *genericoptions.AdmissionOptions {
	options := genericoptions.NewAdmissionOptions()
	clustername.Register(options.Plugins)
	controlplane.Register(options.Plugins)
	controllernamespaces.Register(options.Plugins)
	references.Register(options.Plugins)
	exporttarget.Register(options.Plugins)
	rolloutoverride.Register(options.Plugins)
	ownerreferences.Register(options.Plugins)

	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder,
		clustername.PluginName, controlplane.PluginName, controllernamespaces.PluginName, references.PluginName, exporttarget.PluginName,
		rolloutoverride.PluginName, ownerreferences.PluginName)

	return options
}

// AdmissionInitializer makes the initializer of our plugins. The plugins see this server's own objects through its
// loopback connection, which works from the moment the server serves.
func AdmissionInitializer(config *genericapiserver.Config, choices initializer.Choices) (admission.PluginInitializer, error) {
	client, err := versioned.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("make loopback client: %w", err)
	}

	informers := externalversions.NewSharedInformerFactory(client, informerResync)

	if err := config.AddPostStartHook("start-omni-admission-informers", func(hook genericapiserver.PostStartHookContext) error {
		informers.StartWithContext(hook)

		return nil
	}); err != nil {
		return nil, fmt.Errorf("start informers with the server: %w", err)
	}

	return initializer.New(informers, choices), nil
}
