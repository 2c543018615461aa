package exporttarget

import (
	"context"
	"errors"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

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

	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ genericinitializer.WantsAuthorizer = &Plugin{}
)

// New makes the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetAuthorizer sets the authorizer that the plugin asks.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// ValidateInitialization fails if the plugin has no authorizer.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return fmt.Errorf("%s has no authorizer", PluginName)
	}

	return nil
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
		if err := p.ask(ctx, attributes, verb, target); err != nil {
			return err
		}
	}

	return nil
}

func sameSpec(old runtime.Object, export *v1alpha1.OmniKubeconfigExport) bool {
	before, ok := old.(*v1alpha1.OmniKubeconfigExport)

	return ok && apiequality.Semantic.DeepEqual(before.Spec, export.Spec)
}

// ask asks whether the user may do this to Secrets of the namespace.
func (p *Plugin) ask(ctx context.Context, attributes admission.Attributes, verb, namespace string) error {
	const field = "spec.targetSecretRef.namespace"

	user := attributes.GetUserInfo()

	decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: verb, APIVersion: "v1", Resource: "secrets", Namespace: namespace, ResourceRequest: true,
	})

	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: whether you may %s Secrets in namespace %q could not be found out, try again: %v",
			field, verb, namespace, err))
	}

	refusal := fmt.Sprintf("%s: user %q cannot %s Secrets in namespace %q, and so cannot have a kubeconfig written there: "+
		"ask for that right, or have somebody with it make this change", field, user.GetName(), verb, namespace)
	if reason != "" {
		refusal += " (" + reason + ")"
	}

	return admission.NewForbidden(attributes, errors.New(refusal))
}
