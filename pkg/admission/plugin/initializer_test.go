package plugin_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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

// Index.By returns several objects in the same order each time.
func TestIndexIsSorted(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.OmniKubeconfigExport{}, 0, cache.Indexers{})

	var index plugin.Index[*v1alpha1.OmniKubeconfigExport]

	index.Use(informer, func(o *v1alpha1.OmniKubeconfigExport) *v1alpha1.OmniKubeconfigExport { return o },
		func(*v1alpha1.OmniKubeconfigExport) []string { return []string{"all"} })

	for i := range 20 {
		export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("export-%02d", i)}}
		if err := informer.GetIndexer().Add(export); err != nil {
			t.Fatal(err)
		}
	}

	found, err := index.By("all")
	if err != nil || len(found) != 20 || !slices.IsSortedFunc(found, func(a, b *v1alpha1.OmniKubeconfigExport) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Errorf("got %v, %v", found, err)
	}
}
