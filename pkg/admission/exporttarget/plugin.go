package exporttarget

import (
	"cmp"
	"context"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
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
// create and update Secrets there. With references checked, it also refuses one that is to take over a Secret (spec.adopt)
// unless the user may update and delete that Secret: its content is replaced, and it is deleted with the export. It asks
// at every change of the spec, because every field of the spec affects the Secret's content.
type Plugin struct {
	*admission.Handler
	permission.Asker

	checkReferences bool
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ genericinitializer.WantsAuthorizer = &Plugin{}
	_ initializer.WantsReferenceCheck    = &Plugin{}
)

// New makes the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetCheckReferences makes the plugin ask about Secrets to be adopted, or not.
func (p *Plugin) SetCheckReferences(on bool) { p.checkReferences = on }

// ValidateInitialization fails if the plugin has no authorizer.
func (p *Plugin) ValidateInitialization() error {
	return p.Initialized(PluginName)
}

// Validate refuses, as forbidden, a target that the user may not write or take over. It also refuses if the authorizer
// gives no answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	export, ok := attributes.GetObject().(*v1alpha1.OmniKubeconfigExport)
	if !ok || attributes.GetSubresource() != "" || sameSpec(attributes.GetOldObject(), export) {
		return nil
	}

	for _, question := range p.questions(export, attributes.GetNamespace()) {
		if err := p.Ask(ctx, attributes, question); err != nil {
			return err
		}
	}

	return nil
}

// questions are what to ask about an export in a namespace.
func (p *Plugin) questions(export *v1alpha1.OmniKubeconfigExport, own string) []permission.Question {
	var questions []permission.Question

	target := export.Spec.TargetSecretRef
	namespace := cmp.Or(target.Namespace, own)

	if namespace != own {
		questions = append(questions, writes("create", namespace), writes("update", namespace))
	}

	if p.checkReferences && export.Spec.Adopt {
		questions = append(questions, adopts("update", namespace, target.Name), adopts("delete", namespace, target.Name))
	}

	return questions
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

// adopts is the question whether the user may update or delete one Secret.
func adopts(verb, namespace, name string) permission.Question {
	return permission.Question{
		Field:     "spec.adopt",
		Right:     authorizer.AttributesRecord{Verb: verb, APIVersion: "v1", Resource: "secrets", Namespace: namespace, Name: name},
		Act:       fmt.Sprintf("%s Secret %q in namespace %q", verb, name, namespace),
		Otherwise: "and so cannot have an export take it over",
	}
}
