package exporttarget

import (
	"cmp"
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

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/permission"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
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
//
// Where the kubeconfig leads is up to the OmniCluster and its OmniConnection. So a user who makes one of them, or changes the
// endpoint, may update the Secrets in other namespaces that exports have written with it: who reads them there would
// connect to what the user names.
type Plugin struct {
	*admission.Handler
	permission.Asker
	sources

	checkReferences bool
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ genericinitializer.WantsAuthorizer = &Plugin{}
	_ initializer.WantsReferenceCheck    = &Plugin{}
	_ initializer.WantsInformers         = &Plugin{}
)

// New makes the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetCheckReferences makes the plugin ask about Secrets to be adopted, or not.
func (p *Plugin) SetCheckReferences(on bool) { p.checkReferences = on }

// SetInformers gives the plugin a view of the exports and clusters. It waits until that is complete.
func (p *Plugin) SetInformers(factory externalversions.SharedInformerFactory) {
	p.useInformers(factory)
	p.SetReadyFunc(admission.ReadyFunc(p.synced))
}

// ValidateInitialization fails if the plugin has no authorizer or no informers.
func (p *Plugin) ValidateInitialization() error {
	return errors.Join(p.Initialized(PluginName), p.exports.Initialized(PluginName))
}

// Validate refuses, as forbidden, a target that the user may not write or take over, and a source of such a target. It also
// refuses if the authorizer gives no answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetSubresource() != "" {
		return nil
	}

	questions, err := p.questions(attributes)
	if err != nil {
		return err
	}

	for _, question := range questions {
		if err := p.Ask(ctx, attributes, question); err != nil {
			return err
		}
	}

	return nil
}

// questions are what to ask about a request.
func (p *Plugin) questions(attributes admission.Attributes) ([]permission.Question, error) {
	own := attributes.GetNamespace()

	switch object := attributes.GetObject().(type) {
	case *v1alpha1.OmniKubeconfigExport:
		if sameSpec(attributes.GetOldObject(), object) {
			return nil, nil
		}

		return p.ofExport(object, own), nil
	case *v1alpha1.OmniCluster:
		if attributes.GetOperation() != admission.Create { // connectionRef and clusterName are immutable
			return nil, nil
		}

		return p.ofSource(attributes, "metadata.name", func(cluster string) bool { return cluster == attributes.GetName() })
	case *v1alpha1.OmniConnection:
		if before, ok := attributes.GetOldObject().(*v1alpha1.OmniConnection); ok && before.Spec.Endpoint == object.Spec.Endpoint {
			return nil, nil
		}

		return p.ofSource(attributes, "spec.endpoint", func(cluster string) bool { return p.connectionOf(own, cluster) == attributes.GetName() })
	default:
		return nil, nil
	}
}

// ofSource are the questions about an OmniCluster or OmniConnection: whether the user may update what exports of its clusters have
// written in other namespaces. field is what decides where it leads.
func (p *Plugin) ofSource(attributes admission.Attributes, field string, isIts func(cluster string) bool) ([]permission.Question, error) {
	if attributes.GetName() == "" {
		return nil, nil // it will be generated, so nothing names it yet
	}

	if !p.WaitForReady() {
		return nil, apierrors.NewServiceUnavailable("omni-apiserver does not know all OmniKubeconfigExports yet, try again")
	}

	exports, err := p.writtenElsewhere(attributes.GetNamespace())
	if err != nil {
		return nil, err
	}

	var questions []permission.Question

	for _, export := range exports {
		if isIts(export.Spec.ClusterRef.Name) {
			questions = append(questions, leads(field, export))
		}
	}

	return questions, nil
}

// ofExport are the questions about an export in a namespace.
func (p *Plugin) ofExport(export *v1alpha1.OmniKubeconfigExport, own string) []permission.Question {
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

// leads is the question whether the user may update the Secret that an export has written in another namespace.
func leads(field string, export *v1alpha1.OmniKubeconfigExport) permission.Question {
	target := export.Status.TargetSecretRef

	return permission.Question{
		Field:     field,
		Right:     authorizer.AttributesRecord{Verb: "update", APIVersion: "v1", Resource: "secrets", Namespace: target.Namespace, Name: target.Name},
		Act:       fmt.Sprintf("update Secret %q in namespace %q", target.Name, target.Namespace),
		Otherwise: fmt.Sprintf("and so cannot decide where the kubeconfig leads that OmniKubeconfigExport %q writes there", export.Name),
	}
}
