package plugin

import (
	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// WantsInformers is implemented by plugins that read other objects of this server.
type WantsInformers interface {
	admission.InitializationValidator

	// SetInformers is called once, before the factory starts.
	SetInformers(externalversions.SharedInformerFactory)
}

// WantsControllerNamespaces is implemented by plugins that need the namespaces in which controllers work.
type WantsControllerNamespaces interface {
	admission.InitializationValidator

	// SetControllerNamespaces is called once. No namespaces mean that controllers work everywhere.
	SetControllerNamespaces([]string)
}

// WantsReferenceCheck is implemented by plugins that a flag of the command line turns on.
type WantsReferenceCheck interface {
	admission.InitializationValidator

	// SetCheckReferences is called once.
	SetCheckReferences(on bool)
}

// Choices are settings from the command line.
type Choices struct {
	// ControllerNamespaces are where controllers work; none means everywhere.
	ControllerNamespaces []string
	// CheckReferences refuses references to Secrets and ConfigMaps that the user who writes them may not get.
	CheckReferences bool
}

// Initializer initializes our plugins and ignores all others.
type Initializer struct {
	informers externalversions.SharedInformerFactory
	choices   Choices
}

var _ admission.PluginInitializer = Initializer{}

// NewInitializer makes an initializer. The caller who made the factory starts it, after the plugins were made.
func NewInitializer(informers externalversions.SharedInformerFactory, choices Choices) Initializer {
	return Initializer{informers: informers, choices: choices}
}

// Initialize calls the setters that a plugin has.
func (i Initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsInformers); ok {
		wants.SetInformers(i.informers)
	}

	if wants, ok := plugin.(WantsControllerNamespaces); ok {
		wants.SetControllerNamespaces(i.choices.ControllerNamespaces)
	}

	if wants, ok := plugin.(WantsReferenceCheck); ok {
		wants.SetCheckReferences(i.choices.CheckReferences)
	}
}
