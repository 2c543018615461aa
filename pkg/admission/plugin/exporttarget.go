package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
	listers "omni.texashpc.com/omni-cluster-operator/pkg/generated/listers/omni/v1alpha1"
)

// ExportTargetPlugin is the plugin's name in the admission flags.
const ExportTargetPlugin = "OmniExportTarget"

// ExportTarget refuses an OmniKubeconfigExport whose target is in another namespace, unless the user who writes it may
// create and update Secrets there. With references checked, it also refuses one that is to take over a Secret (spec.adopt)
// unless the user may update and delete that Secret: its content is replaced, and it is deleted with the export. It asks
// at every change of the spec, because every field of the spec affects the Secret's content.
//
// Where the kubeconfig leads is up to the OmniCluster and its OmniConnection. So a user who makes one of them, or changes the
// endpoint, may update the Secrets in other namespaces that exports have written with it: who reads them there would
// connect to what the user names.
//
// With references checked, it also refuses to have an export take over a Secret that the user may not replace and delete: the
// controller writes with its own rights, not with the user's.
type ExportTarget struct {
	*admission.Handler
	Asker
	sources

	checkReferences bool
}

var (
	_ admission.ValidationInterface      = &ExportTarget{}
	_ genericinitializer.WantsAuthorizer = &ExportTarget{}
	_ WantsReferenceCheck                = &ExportTarget{}
	_ WantsInformers                     = &ExportTarget{}
)

// NewExportTarget makes the plugin.
func NewExportTarget() *ExportTarget {
	return &ExportTarget{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetCheckReferences makes the plugin ask about Secrets to be adopted, or not.
func (p *ExportTarget) SetCheckReferences(on bool) { p.checkReferences = on }

// SetInformers gives the plugin a view of the exports and clusters. It waits until that is complete.
func (p *ExportTarget) SetInformers(factory externalversions.SharedInformerFactory) {
	p.useInformers(factory)
	p.SetReadyFunc(admission.ReadyFunc(p.synced))
}

// ValidateInitialization fails if the plugin has no authorizer or no informers.
func (p *ExportTarget) ValidateInitialization() error {
	return errors.Join(p.Initialized(ExportTargetPlugin), p.exports.Initialized(ExportTargetPlugin))
}

// Validate refuses, as forbidden, a target that the user may not write or take over, and a source of such a target. It also
// refuses if the authorizer gives no answer.
func (p *ExportTarget) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
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
func (p *ExportTarget) questions(attributes admission.Attributes) ([]Question, error) {
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
func (p *ExportTarget) ofSource(attributes admission.Attributes, field string, isIts func(cluster string) bool) ([]Question, error) {
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

	var questions []Question

	for _, export := range exports {
		if isIts(export.Spec.ClusterRef.Name) {
			questions = append(questions, leads(field, export))
		}
	}

	return questions, nil
}

// ofExport are the questions about an export in a namespace.
func (p *ExportTarget) ofExport(export *v1alpha1.OmniKubeconfigExport, own string) []Question {
	var questions []Question

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
func writes(verb, namespace string) Question {
	return Question{
		Field:     "spec.targetSecretRef.namespace",
		Right:     authorizer.AttributesRecord{Verb: verb, APIVersion: "v1", Resource: "secrets", Namespace: namespace},
		Act:       fmt.Sprintf("%s Secrets in namespace %q", verb, namespace),
		Otherwise: "and so cannot have a kubeconfig written there",
	}
}

// adopts is the question whether the user may update or delete one Secret.
func adopts(verb, namespace, name string) Question {
	return Question{
		Field:     "spec.adopt",
		Right:     authorizer.AttributesRecord{Verb: verb, APIVersion: "v1", Resource: "secrets", Namespace: namespace, Name: name},
		Act:       fmt.Sprintf("%s Secret %q in namespace %q", verb, name, namespace),
		Otherwise: "and so cannot have an export take it over",
	}
}

// leads is the question whether the user may update the Secret that an export has written in another namespace.
func leads(field string, export *v1alpha1.OmniKubeconfigExport) Question {
	target := export.Status.TargetSecretRef

	return Question{
		Field:     field,
		Right:     authorizer.AttributesRecord{Verb: "update", APIVersion: "v1", Resource: "secrets", Namespace: target.Namespace, Name: target.Name},
		Act:       fmt.Sprintf("update Secret %q in namespace %q", target.Name, target.Namespace),
		Otherwise: fmt.Sprintf("and so cannot decide where the kubeconfig leads that OmniKubeconfigExport %q writes there", export.Name),
	}
}

// sources finds what exports write, and from which OmniConnection.
type sources struct {
	exports  Index[*v1alpha1.OmniKubeconfigExport] // those that have written a Secret in another namespace, by their own
	clusters listers.OmniClusterLister
	synced   cache.InformerSynced // all of it is known
}

// useInformers has OmniKubeconfigExports indexed, and the rest of each object stripped from memory.
func (s *sources) useInformers(factory externalversions.SharedInformerFactory) {
	omni := factory.Omni().V1alpha1()
	clusters := omni.OmniClusters()
	s.exports.Use(omni.OmniKubeconfigExports().Informer(), onlyTarget, elsewhere)
	s.clusters = clusters.Lister()
	s.synced = func() bool { return s.exports.HasSynced() && clusters.Informer().HasSynced() }
}

// writtenElsewhere returns the exports of a namespace that have written a Secret in another one.
func (s *sources) writtenElsewhere(namespace string) ([]*v1alpha1.OmniKubeconfigExport, error) {
	exports, err := s.exports.By(namespace)
	if err != nil {
		return nil, fmt.Errorf("look for exports into other namespaces: %w", err)
	}

	return exports, nil
}

// connectionOf returns the connection of an OmniCluster; empty if that does not exist. Then its creation is asked about.
func (s *sources) connectionOf(namespace, cluster string) string {
	found, err := s.clusters.OmniClusters(namespace).Get(cluster)
	if err != nil {
		return ""
	}

	return found.Spec.ConnectionRef.Name
}

func elsewhere(export *v1alpha1.OmniKubeconfigExport) []string {
	if target := export.Status.TargetSecretRef; target == nil || target.Namespace == "" || target.Namespace == export.Namespace {
		return nil
	}

	return []string{export.Namespace}
}

// onlyTarget keeps what the plugin reads.
func onlyTarget(export *v1alpha1.OmniKubeconfigExport) *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{
		ObjectMeta: metav1.ObjectMeta{Name: export.Name, Namespace: export.Namespace, UID: export.UID, ResourceVersion: export.ResourceVersion},
		Spec:       v1alpha1.OmniKubeconfigExportSpec{ClusterRef: export.Spec.ClusterRef},
		Status:     v1alpha1.OmniKubeconfigExportStatus{TargetSecretRef: export.Status.TargetSecretRef},
	}
}
