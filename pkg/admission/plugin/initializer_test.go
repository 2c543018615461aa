package plugin_test

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/fake"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

type initialized struct {
	*admission.Handler

	informers  externalversions.SharedInformerFactory
	namespaces []string
	checks     bool
}

func (p *initialized) SetInformers(factory externalversions.SharedInformerFactory) {
	p.informers = factory
}
func (p *initialized) SetControllerNamespaces(namespaces []string) { p.namespaces = namespaces }
func (p *initialized) SetCheckReferences(on bool)                  { p.checks = on }
func (p *initialized) ValidateInitialization() error               { return nil }

func TestInitialize(t *testing.T) {
	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(), 0)
	ours := &initialized{}
	plugin.NewInitializer(factory, plugin.Choices{ControllerNamespaces: []string{"apps"}, CheckReferences: true}).Initialize(ours)

	if ours.informers != factory || !ours.checks || !slices.Equal(ours.namespaces, []string{"apps"}) {
		t.Errorf("got %v, %v", ours.informers, ours.namespaces)
	}

	// A plugin of the library implements none of our interfaces.
	plugin.NewInitializer(factory, plugin.Choices{}).Initialize(admission.NewHandler(admission.Create))
}
