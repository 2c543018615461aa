package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	// RolloutOverridePlugin is the plugin's name in the admission flags.
	RolloutOverridePlugin = "OmniRolloutOverride"
	// Verb is what a user must be allowed to do to the OmniCluster.
	Verb = "override"
)

// RolloutOverride refuses a new annotation rollout-override of an OmniCluster unless the user may override it. Removing the
// annotation needs no permission.
// By the annotation, changes of an OmniCluster begin out of turn: who may edit clusters must not get round an OmniRolloutPolicy
// by that alone.
type RolloutOverride struct {
	*admission.Handler
	Asker
}

var (
	_ admission.ValidationInterface      = &RolloutOverride{}
	_ genericinitializer.WantsAuthorizer = &RolloutOverride{}
)

// NewRolloutOverride makes the plugin.
func NewRolloutOverride() *RolloutOverride {
	return &RolloutOverride{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// ValidateInitialization fails if the plugin has no authorizer.
func (p *RolloutOverride) ValidateInitialization() error {
	return p.Initialized(RolloutOverridePlugin)
}

// Validate refuses, as forbidden, an override that the user may not make. It also refuses if the authorizer gives no
// answer.
func (p *RolloutOverride) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	value := overrideOf(attributes.GetObject())
	if value == "" || attributes.GetSubresource() != "" || value == overrideOf(attributes.GetOldObject()) {
		return nil
	}

	return p.Ask(ctx, attributes, Question{
		Field: fmt.Sprintf("metadata.annotations[%s]", v1alpha1.AnnotationRolloutOverride),
		Right: authorizer.AttributesRecord{
			Verb: Verb, APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: "omniclusters",
			Namespace: attributes.GetNamespace(), Name: attributes.GetName(),
		},
		Act:       fmt.Sprintf("%s omniclusters in namespace %q", Verb, attributes.GetNamespace()),
		Otherwise: "so its changes wait for their turn",
	})
}

// overrideOf is the annotation of an OmniCluster; empty for anything else.
func overrideOf(object runtime.Object) string {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok || cluster == nil {
		return ""
	}

	return cluster.Annotations[v1alpha1.AnnotationRolloutOverride]
}
