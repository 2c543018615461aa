package exporttarget

import (
	"context"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/permission"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// PluginName is the plugin's name in the admission flags.
const PluginName = "OmniExportTarget"

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses an OmniKubeconfigExport whose target is in another namespace, unless the user who writes it may
// create and update Secrets there. It asks at every change of the spec, because every field of the spec affects the
// Secret's content.
type Plugin struct {
	*admission.Handler
	permission.Asker
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ genericinitializer.WantsAuthorizer = &Plugin{}
)

// New makes the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// ValidateInitialization fails if the plugin has no authorizer.
func (p *Plugin) ValidateInitialization() error {
	return p.Initialized(PluginName)
}

// Validate refuses, as forbidden, a target that the user may not write. It also refuses if the authorizer gives no
// answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	export, ok := attributes.GetObject().(*v1alpha1.OmniKubeconfigExport)
	if !ok || attributes.GetSubresource() != "" || sameSpec(attributes.GetOldObject(), export) {
		return nil
	}

	target := export.Spec.TargetSecretRef.Namespace
	if target == "" || target == attributes.GetNamespace() {
		return nil
	}

	for _, verb := range []string{"create", "update"} {
		if err := p.Ask(ctx, attributes, writes(verb, target)); err != nil {
			return err
		}
	}

	return nil
}

func sameSpec(old runtime.Object, export *v1alpha1.OmniKubeconfigExport) bool {
	before, ok := old.(*v1alpha1.OmniKubeconfigExport)

	return ok && apiequality.Semantic.DeepEqual(before.Spec, export.Spec)
}

// writes is the question whether the user may create or update the Secrets of a namespace.
func writes(verb, namespace string) permission.Question {
	return permission.Question{
		Field:     "spec.targetSecretRef.namespace",
		Right:     authorizer.AttributesRecord{Verb: verb, APIVersion: "v1", Resource: "secrets", Namespace: namespace},
		Act:       fmt.Sprintf("%s Secrets in namespace %q", verb, namespace),
		Otherwise: "and so cannot have a kubeconfig written there",
	}
}
