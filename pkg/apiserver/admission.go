package apiserver

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
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
	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, plugin.Register(options.Plugins)...)

	return options
}

// AdmissionInitializer makes the initializer of our plugins. The plugins see this server's own objects through its
// loopback connection, which works from the moment the server serves.
func AdmissionInitializer(config *genericapiserver.Config, choices plugin.Choices) (admission.PluginInitializer, error) {
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

	return plugin.NewInitializer(informers, choices), nil
}
