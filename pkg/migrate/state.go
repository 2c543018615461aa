package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

const (
	// operatorSelector selects the Deployment of the operator with CRDs, whatever the name of its Helm release. Our
	// Deployment has another name label, and no label control-plane.
	operatorSelector  = nameLabel + "=" + nameValue + "," + controlPlaneLabel + "=" + controlPlaneValue
	nameLabel         = "app.kubernetes.io/name"
	nameValue         = "omni-cluster-operator"
	controlPlaneLabel = "control-plane"
	controlPlaneValue = "controller-manager"
	// theirFinalizer is the finalizer of the operator with CRDs.
	theirFinalizer = v1alpha1.GroupName + "/finalizer"
	// registration is the name of the APIService of our group.
	registration = "v1alpha1." + v1alpha1.GroupName
)

// state is what a hub has of the operator with CRDs at one moment.
type state struct {
	HubID       string
	Definitions []unstructured.Unstructured
	Deployments []unstructured.Unstructured
	// Namespaces are warnings of Namespaces that go with the old installation.
	Namespaces []string
	// Webhooks are configurations of the operator; OtherWebhooks name the group but belong to somebody else.
	Webhooks      []unstructured.Unstructured
	OtherWebhooks []string
	// Objects are in the order of kinds, then by namespace and name.
	Objects []unstructured.Unstructured
	// Owned are the Secrets that objects of the group own, without content.
	Owned []metav1.PartialObjectMetadata
	// Older are the names of the definitions of the older group.
	Older []string
	// Registration is the APIService; nil if there is none.
	Registration *unstructured.Unstructured
}

// readState reads the whole state.
func (h *hub) readState(ctx context.Context) (*state, error) {
	s := &state{}

	system, err := h.get(ctx, namespacesResource, "", metav1.NamespaceSystem)
	if err != nil {
		return nil, err
	}

	if system == nil {
		return nil, errors.New("the management cluster has no namespace kube-system")
	}

	s.HubID = string(system.GetUID())

	for _, read := range []func(context.Context, *state) error{h.lookDefinitions, h.lookOperator, h.lookWebhooks, h.lookObjects, h.lookSecrets} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}

	s.Registration, err = h.get(ctx, apiServicesResource, "", registration)

	return s, err
}

func (h *hub) lookDefinitions(ctx context.Context, s *state) error {
	all, err := h.list(ctx, definitionsResource, "", "")
	if err != nil {
		return err
	}

	for i := range all {
		switch group, _, _ := unstructured.NestedString(all[i].Object, "spec", "group"); group {
		case v1alpha1.GroupName:
			s.Definitions = append(s.Definitions, all[i])
		case olderGroup:
			s.Older = append(s.Older, all[i].GetName())
		}
	}

	return nil
}

func (h *hub) lookOperator(ctx context.Context, s *state) (err error) {
	s.Deployments, err = h.list(ctx, deploymentsResource, "", operatorSelector)

	return err
}

// lookWebhooks reads the webhook configurations.
func (h *hub) lookWebhooks(ctx context.Context, s *state) error {
	for _, resource := range []schema.GroupVersionResource{validatingResource, mutatingResource} {
		all, err := h.list(ctx, resource, "", "")
		if err != nil {
			return err
		}

		for i := range all {
			switch ours, named := webhookIsTheirs(&all[i]); {
			case ours:
				s.Webhooks = append(s.Webhooks, all[i])
			case named:
				s.OtherWebhooks = append(s.OtherWebhooks, all[i].GetKind()+" "+all[i].GetName())
			}
		}
	}

	return nil
}

// webhookIsTheirs reports whether a configuration belongs to the operator with CRDs: all its rules are about the
// group, and it has the label or the name that the operator's chart or kustomization gives. named reports whether any
// rule is about the group. A policy engine can have such a configuration, and keeps it.
func webhookIsTheirs(configuration *unstructured.Unstructured) (theirs, named bool) {
	only := true
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")

	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(fields, "rules")

		for _, rule := range rules {
			fields, _ := rule.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(fields, "apiGroups")

			for _, group := range groups {
				named = named || group == v1alpha1.GroupName
				only = only && group == v1alpha1.GroupName
			}
		}
	}

	marked := configuration.GetLabels()[nameLabel] == nameValue ||
		strings.Contains(configuration.GetName(), nameValue) && strings.HasSuffix(configuration.GetName(), "-webhook-configuration")

	return named && only && marked, named
}

// lookObjects reads the objects of all definitions, also of kinds that we do not have.
func (h *hub) lookObjects(ctx context.Context, s *state) error {
	for _, plural := range s.plurals() {
		found, err := h.list(ctx, v1alpha1.SchemeGroupVersion.WithResource(plural), "", "")
		if err != nil {
			return err
		}

		slices.SortFunc(found, func(a, b unstructured.Unstructured) int { return strings.Compare(idOf(&a), idOf(&b)) })
		s.Objects = append(s.Objects, found...)
	}

	return nil
}

// plurals returns the resources of the definitions that exist: ours first, in their order.
func (s *state) plurals() []string {
	var there, sorted []string

	for i := range s.Definitions {
		plural, _, _ := unstructured.NestedString(s.Definitions[i].Object, "spec", "names", "plural")
		there = append(there, plural)
	}

	for _, k := range kinds() {
		if at := slices.Index(there, k.Plural); at >= 0 {
			sorted = append(sorted, k.Plural)
			there = slices.Delete(there, at, at+1)
		}
	}

	slices.Sort(there)

	return append(sorted, there...)
}

func (h *hub) lookSecrets(ctx context.Context, s *state) error {
	all, err := h.listSecrets(ctx)
	if err != nil {
		return err
	}

	for i := range all {
		if slices.ContainsFunc(all[i].OwnerReferences, func(owner metav1.OwnerReference) bool { return isOurs(owner.APIVersion) }) {
			s.Owned = append(s.Owned, all[i])
		}
	}

	return nil
}

// idOf names an object for people.
func idOf(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetKind() + " " + obj.GetName()
	}

	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// resourceOf returns the resource of an object of the group.
func (s *state) resourceOf(obj *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	if definition := definitionOf(s.Definitions, obj.GetKind()); definition != nil {
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")

		return v1alpha1.SchemeGroupVersion.WithResource(plural), nil
	}

	return schema.GroupVersionResource{}, fmt.Errorf("%s: there is no definition of its kind", idOf(obj))
}

// runs reports whether a Deployment of the operator asks for Pods.
func (s *state) runs() bool {
	return slices.ContainsFunc(s.Deployments, func(at unstructured.Unstructured) bool { return replicas(&at) > 0 })
}

// registered reports whether an extension server serves the group: kube-apiserver's own APIService for definitions
// names no Service.
func (s *state) registered() bool {
	if s.Registration == nil {
		return false
	}

	service, found, _ := unstructured.NestedMap(s.Registration.Object, "spec", "service")

	return found && len(service) > 0
}

// object is one of our typed objects.
type object interface {
	runtime.Object
	metav1.Object
}

// kind is one of the eight kinds that both operators have.
type kind struct {
	Name   string
	Plural string
	// make returns an empty object to decode into.
	make func() object
	// adapt changes the object as the takeover requires, and says what that means.
	adapt func(object) []Finding
	// permission is the field of the spec that adapt sets only for the takeover, if it may not stay: it would let a later
	// change of the object write over what others have made. Empty for kinds whose permission does nothing later.
	permission string
	// check applies the rules of our API server to an object with its defaults.
	check func(object) (field.ErrorList, []string)
}

func (k kind) resource() schema.GroupVersionResource {
	return v1alpha1.SchemeGroupVersion.WithResource(k.Plural)
}

// kinds are in the order of the import: an object comes after those it names, and an OmniCluster after its documents,
// so that no plan is made without them.
func kinds() []kind {
	return []kind{
		kindOf("OmniConnection", "omniconnections", adaptConnection,
			validation.ValidateOmniConnection, validation.WarningsForOmniConnection),
		kindOf("OmniControlPlane", "omnicontrolplanes", nothingToAdapt[*v1alpha1.OmniControlPlane],
			validation.ValidateOmniControlPlane, validation.WarningsForOmniControlPlane),
		kindOf("OmniWorkers", "omniworkers", nothingToAdapt[*v1alpha1.OmniWorkers],
			validation.ValidateOmniWorkers, validation.WarningsForOmniWorkers),
		kindOf("OmniMachine", "omnimachines", nothingToAdapt[*v1alpha1.OmniMachine],
			validation.ValidateOmniMachine, validation.WarningsForOmniMachine),
		kindOf("OmniCluster", "omniclusters", adaptCluster,
			validation.ValidateOmniCluster, validation.WarningsForOmniCluster),
		kindOf("OmniKubeconfigExport", "omnikubeconfigexports", adaptExport,
			validation.ValidateOmniKubeconfigExport, validation.WarningsForOmniKubeconfigExport),
		kindOf("OmniSecretSync", "omnisecretsyncs", adaptSync,
			validation.ValidateOmniSecretSync, func(*v1alpha1.OmniSecretSync) []string { return nil }).permittedBy("adopt"),
		kindOf("OmniHelmRelease", "omnihelmreleases", adaptRelease,
			validation.ValidateOmniHelmRelease, validation.WarningsForOmniHelmRelease).permittedBy("takeOwnership"),
	}
}

// kindOf combines the functions of one kind.
func kindOf[T any, P interface {
	*T
	object
}](name, plural string, adapt func(P) []Finding, validate func(P) field.ErrorList, warnings func(P) []string) kind {
	of := func(obj object) P { return obj.(P) } //nolint:forcetypeassert // made by make, below

	return kind{
		Name: name, Plural: plural,
		make:  func() object { return P(new(T)) },
		adapt: func(obj object) []Finding { return adapt(of(obj)) },
		check: func(obj object) (field.ErrorList, []string) { return validate(of(obj)), warnings(of(obj)) },
	}
}

// permittedBy returns the kind with the field that permits its takeover.
func (k kind) permittedBy(field string) kind {
	k.permission = field

	return k
}

// kindNamed finds a kind; the second result is false for a kind that we do not have.
func kindNamed(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.Name == name {
			return k, true
		}
	}

	return kind{}, false
}

const (
	// chartLabel is on every object of the old operator's chart, with its name and version; theirChart begins it.
	chartLabel = "helm.sh/chart"
	theirChart = nameValue + "-"
	// releaseName and releaseNamespace are Helm's marks on the objects of a release.
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// namespaceWarnings warns of each Namespace of a Deployment that goes with the old installation.
func (h *hub) namespaceWarnings(ctx context.Context, deployments []unstructured.Unstructured) ([]string, error) {
	var warnings []string

	for i := range deployments {
		namespace, err := h.get(ctx, namespacesResource, "", deployments[i].GetNamespace())
		if err != nil {
			return nil, err
		}

		if namespace != nil && isInstalledWith(namespace, &deployments[i]) {
			warnings = append(warnings, fmt.Sprintf("Namespace %s is part of the old installation: helm uninstall and kubectl delete -k delete it with "+
				"everything in it, the Secret with Omni's key and the objects of this operator, and an annotation does not keep it. Take the commands of "+
				"\"Uninstall the old operator\" in docs/how-to/migrate.md", namespace.GetName()))
		}
	}

	return slices.Compact(warnings), nil
}

// isInstalledWith reports whether a Namespace belongs to the installation of a Deployment: to its Helm release, which has it
// with namespace.create, or to the kustomization of the old operator.
func isInstalledWith(namespace, deployment *unstructured.Unstructured) bool {
	marks, labels := namespace.GetAnnotations(), namespace.GetLabels()
	of := deployment.GetAnnotations()

	return marks[releaseName] != "" && marks[releaseName] == of[releaseName] && marks[releaseNamespace] == of[releaseNamespace] ||
		strings.HasPrefix(labels[chartLabel], theirChart) ||
		labels[nameLabel] == nameValue && labels[controlPlaneLabel] == controlPlaneValue
}
