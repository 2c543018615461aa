package plugin

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ControllerNamespacesPlugin is the plugin's name in the admission flags.
const ControllerNamespacesPlugin = "OmniControllerNamespaces"

// ControllerNamespaces warns who gives a controller work at any of our objects outside the controllers' namespaces.
// There the object would be stored, and then wait for ever.
type ControllerNamespaces struct {
	*admission.Handler

	namespaces []string
}

var (
	_ admission.ValidationInterface = &ControllerNamespaces{}
	_ WantsControllerNamespaces     = &ControllerNamespaces{}
)

// NewControllerNamespaces makes the plugin.
func NewControllerNamespaces() *ControllerNamespaces {
	return &ControllerNamespaces{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// SetControllerNamespaces says where controllers work; none means everywhere.
func (p *ControllerNamespaces) SetControllerNamespaces(namespaces []string) {
	p.namespaces = namespaces
}

// ValidateInitialization has nothing to check: no namespaces are a valid choice.
func (p *ControllerNamespaces) ValidateInitialization() error { return nil }

// Validate never refuses; it adds a warning to the answer.
func (p *ControllerNamespaces) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	namespace := attributes.GetNamespace()
	watched := len(p.namespaces) == 0 || slices.Contains(p.namespaces, namespace)

	if watched || attributes.GetResource().Group != v1alpha1.GroupName || attributes.GetSubresource() != "" || !needsController(attributes) {
		return nil
	}

	// With the longest namespace name these are 116 characters; clients cut warnings off at 120.
	warning.AddWarning(ctx, "", fmt.Sprintf("metadata.namespace: no controller serves %q: it waits", namespace))

	return nil
}

// needsController reports whether a request leaves something to do: all but an update of metadata alone, and the deletion of an
// object that has no finalizer.
func needsController(attributes admission.Attributes) bool {
	object, _ := attributes.GetObject().(metav1.Object)
	old, hadOld := attributes.GetOldObject().(metav1.Object)

	switch attributes.GetOperation() {
	case admission.Update:
		return object != nil && hadOld && object.GetGeneration() != old.GetGeneration()
	case admission.Delete:
		return hadOld && len(old.GetFinalizers()) > 0
	default:
		return true
	}
}
