package plugin

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// OwnerReferencesPlugin is the plugin's name in the admission flags.
const OwnerReferencesPlugin = "OmniOwnerReferences"

// OwnerReferences refuses to let a user who may not delete an object have the garbage collector do it. Removing all references needs no
// permission.
// The garbage collector deletes an object whose owners are gone, so who may change objects must not get round the right to
// delete them by writing a reference.
type OwnerReferences struct {
	*admission.Handler
	Asker
}

var (
	_ admission.ValidationInterface      = &OwnerReferences{}
	_ genericinitializer.WantsAuthorizer = &OwnerReferences{}
)

// NewOwnerReferences makes the plugin.
func NewOwnerReferences() *OwnerReferences {
	return &OwnerReferences{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// ValidateInitialization fails if the plugin has no authorizer.
func (p *OwnerReferences) ValidateInitialization() error { return p.Initialized(OwnerReferencesPlugin) }

// Validate refuses, as forbidden, other owners of an object that the user may not delete, and the confirmation of a deletion
// while there are owners. It also refuses if the authorizer gives no answer. It warns a user who writes owners that the garbage
// collector waits for a confirmation.
func (p *OwnerReferences) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().Group != v1alpha1.GroupName || attributes.GetSubresource() != "" {
		return nil
	}

	before, now := ownedOf(attributes.GetOldObject()), ownedOf(attributes.GetObject())
	changed := !maps.Equal(before.owners, now.owners)

	if len(now.owners) == 0 || !changed && (before.confirmed || !now.confirmed) {
		return nil
	}

	if changed && !now.confirmed {
		warning.AddWarning(ctx, "", fmt.Sprintf("metadata.ownerReferences: when its owner is deleted, this object stays until its annotation %s equals its name",
			v1alpha1.AnnotationConfirmDeletion))
	}

	return p.Ask(ctx, attributes, deletes(attributes))
}

// deletes is the question whether the user may delete the object.
func deletes(attributes admission.Attributes) Question {
	resource, namespace := attributes.GetResource(), attributes.GetNamespace()

	return Question{
		Field: "metadata.ownerReferences",
		Right: authorizer.AttributesRecord{
			Verb: "delete", APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Namespace: namespace, Name: attributes.GetName(),
		},
		Act:       fmt.Sprintf("delete %s in namespace %q", resource.Resource, namespace),
		Otherwise: "and so cannot have the garbage collector do it",
	}
}

// owner is what the garbage collector looks an owner up by.
type owner struct{ apiVersion, kind, name, uid string }

// owned is what the plugin reads of an object.
type owned struct {
	owners    map[owner]bool
	confirmed bool
}

func ownedOf(object runtime.Object) owned {
	if object == nil {
		return owned{}
	}

	accessor, err := meta.Accessor(object)
	if err != nil {
		return owned{}
	}

	found := owned{owners: map[owner]bool{}, confirmed: v1alpha1.IsDeletionConfirmed(accessor)}
	for _, reference := range accessor.GetOwnerReferences() {
		found.owners[owner{reference.APIVersion, reference.Kind, reference.Name, string(reference.UID)}] = true
	}

	return found
}
