package plugin

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ReferencesPlugin is the plugin's name in the admission flags.
const ReferencesPlugin = "OmniReferences"

// MaxNew is how many different Secrets and ConfigMaps one request may add: each one costs a request to the management
// cluster.
const MaxNew = 100

// References refuses new or changed references to Secrets and ConfigMaps that the user may not get.
// The controller reads with its own rights: without the plugin, a user who may write our objects could use, and copy, Secrets
// that the user may not read.
//
// It is off by default. A Pod can mount every Secret of its namespace as well, and GitOps controllers often may write objects
// without reading Secrets.
type References struct {
	*admission.Handler

	Asker

	checkReferences bool
}

var (
	_ admission.ValidationInterface      = &References{}
	_ genericinitializer.WantsAuthorizer = &References{}
	_ WantsReferenceCheck                = &References{}
)

// NewReferences makes the plugin, which does nothing until SetCheckReferences turns it on.
func NewReferences() *References {
	return &References{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetCheckReferences turns the plugin on or off.
func (p *References) SetCheckReferences(on bool) { p.checkReferences = on }

// ValidateInitialization fails if the plugin is on and has no authorizer.
func (p *References) ValidateInitialization() error {
	if !p.checkReferences {
		return nil
	}

	return p.Initialized(ReferencesPlugin)
}

// Validate refuses, as forbidden, the first new or changed reference to an object that the user may not get. It also
// refuses if the authorizer gives no answer.
func (p *References) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.checkReferences || attributes.GetResource().Group != v1alpha1.GroupName || attributes.GetSubresource() != "" {
		return nil
	}

	asked := map[[2]string]bool{}

	for _, reference := range begun(Of(attributes.GetOldObject()), Of(attributes.GetObject())) {
		what := [2]string{reference.Resource, reference.Name}
		if reference.Name == "" || asked[what] {
			continue
		}

		if asked[what] = true; len(asked) > MaxNew {
			return admission.NewForbidden(attributes, fmt.Errorf(
				"more than %d Secrets and ConfigMaps are named for the first time: name them in several steps", MaxNew))
		}

		if err := p.Ask(ctx, attributes, reads(attributes.GetNamespace(), reference)); err != nil {
			return err
		}
	}

	return nil
}

// begun lists the references that were not there before. Who has all keys of a Secret copied may have fewer copied.
func begun(before, now []Reference) []Reference {
	known := map[use]bool{}
	for _, reference := range before {
		known[reference.use()] = true
	}

	var fresh []Reference

	for _, reference := range now {
		if !known[reference.use()] && !known[reference.all().use()] {
			fresh = append(fresh, reference)
		}
	}

	return fresh
}

// reads is the question whether the user may get what a reference names.
func reads(namespace string, reference Reference) Question {
	return Question{
		Field:     reference.Field,
		Right:     authorizer.AttributesRecord{Verb: "get", APIVersion: "v1", Resource: reference.Resource, Namespace: namespace, Name: reference.Name},
		Act:       fmt.Sprintf("get %s %q in namespace %q", reference.Resource, reference.Name, namespace),
		Otherwise: "and so cannot have an object use it",
	}
}

// The resources that references name.
const (
	secrets    = "secrets"
	configMaps = "configmaps"
)

// Reference is a Secret or ConfigMap of the object's own namespace whose content the object uses.
type Reference struct {
	// Field is the path of the reference, such as spec.patches[0].valueFrom.secretKeyRef.
	Field string
	// Resource is secrets or configmaps.
	Resource string
	// Name of the Secret or ConfigMap, and the key inside it; empty for all keys or the default.
	Name, Key string
	// Destination is where the content goes, as far as the object itself says so.
	Destination string
}

var index = regexp.MustCompile(`\[\d+\]`)

// use identifies a reference independently of its place in a list.
type use struct{ field, resource, name, key, destination string }

func (r Reference) use() use {
	return use{index.ReplaceAllString(r.Field, "[]"), r.Resource, r.Name, r.Key, r.Destination}
}

// Of lists the references of one of our objects, in the order of its fields. A Secret that an object writes is no
// reference.
func Of(object runtime.Object) []Reference {
	switch o := object.(type) {
	case *v1alpha1.OmniConnection:
		return []Reference{keyed("spec.auth.serviceAccountSecretRef", o.Spec.Auth.ServiceAccountSecretRef, o.Spec.Endpoint)}
	case *v1alpha1.OmniCluster:
		references := patches(o.Spec.Patches, "") // connectionRef cannot be changed
		for i := range o.Spec.Kubernetes.Manifests {
			references = append(references, valueFrom(fmt.Sprintf("spec.kubernetes.manifests[%d]", i), o.Spec.Kubernetes.Manifests[i].ValueFrom, "")...)
		}

		return references
	case *v1alpha1.OmniControlPlane:
		return patches(o.Spec.Patches, o.Spec.ClusterRef.Name)
	case *v1alpha1.OmniWorkers:
		return patches(o.Spec.Patches, o.Spec.ClusterRef.Name)
	case *v1alpha1.OmniMachine:
		return patches(o.Spec.Patches, o.Spec.ClusterRef.Name)
	case *v1alpha1.OmniSecretSync:
		return ofSync(&o.Spec)
	case *v1alpha1.OmniHelmRelease:
		return ofRelease(&o.Spec)
	default:
		return nil
	}
}

// sourceOfSync is the field whose references without a key are for all keys; elsewhere they are for a default one.
const sourceOfSync = "spec.sourceSecretRef"

// all is the reference to all keys; the same one where that means something else.
func (r Reference) all() Reference {
	if r.Field == sourceOfSync {
		r.Key = ""
	}

	return r
}

// ofSync lists the references of an OmniSecretSync: each key that it copies is one, because a key that is added is used for the first
// time.
func ofSync(spec *v1alpha1.OmniSecretSyncSpec) []Reference {
	references := []Reference{keyed("spec.kubeconfigSecretRef", spec.KubeconfigSecretRef, "")}
	source := whole(sourceOfSync, spec.SourceSecretRef.Name, spec.ClusterRef.Name)

	if len(spec.Keys) == 0 {
		return append(references, source)
	}

	for _, key := range spec.Keys {
		source.Key = key.From
		references = append(references, source)
	}

	return references
}

// ofRelease lists the references of an OmniHelmRelease. What becomes of values is not known, as the chart decides it; but
// they go into the cluster that the release goes to, where Helm's record holds all of them.
func ofRelease(spec *v1alpha1.OmniHelmReleaseSpec) []Reference {
	chart := spec.Chart.Repository + " " + spec.Chart.Chart
	installed := strings.Join([]string{chart, spec.ClusterRef.Name, spec.KubeconfigSecretRef.Name, spec.KubeconfigSecretRef.Key}, " ")
	references := []Reference{keyed("spec.kubeconfigSecretRef", spec.KubeconfigSecretRef, "")}

	for i, values := range spec.Chart.ValuesFrom {
		reference := Reference{
			Field: fmt.Sprintf("spec.chart.valuesFrom[%d]", i), Resource: configMaps, Name: values.Name, Key: values.Key, Destination: installed,
		}
		if values.Kind == v1alpha1.ValuesSecret {
			reference.Resource = secrets
		}

		references = append(references, reference)
	}

	if ref := spec.Chart.AuthSecretRef; ref != nil {
		references = append(references, whole("spec.chart.authSecretRef", ref.Name, chart))
	}

	if ref := spec.Chart.CASecretRef; ref != nil {
		references = append(references, whole("spec.chart.caSecretRef", ref.Name, ""))
	}

	if spec.Chart.Verify != nil {
		references = append(references, keyed("spec.chart.verify.keyringSecretRef", spec.Chart.Verify.KeyringSecretRef, ""))
	}

	return references
}

func whole(field, name, destination string) Reference {
	return Reference{Field: field, Resource: secrets, Name: name, Destination: destination}
}

func keyed(field string, ref v1alpha1.SecretKeyReference, destination string) Reference {
	return Reference{Field: field, Resource: secrets, Name: ref.Name, Key: ref.Key, Destination: destination}
}

func patches(patches []v1alpha1.Patch, destination string) []Reference {
	var references []Reference
	for i := range patches {
		references = append(references, valueFrom(fmt.Sprintf("spec.patches[%d]", i), patches[i].ValueFrom, destination)...)
	}

	return references
}

func valueFrom(field string, source *v1alpha1.ValueSource, destination string) []Reference {
	var references []Reference

	if source == nil {
		return nil
	}

	if ref := source.ConfigMapKeyRef; ref != nil {
		references = append(references, Reference{Field: field + ".valueFrom.configMapKeyRef", Resource: configMaps, Name: ref.Name, Key: ref.Key, Destination: destination})
	}

	if ref := source.SecretKeyRef; ref != nil {
		references = append(references, Reference{Field: field + ".valueFrom.secretKeyRef", Resource: secrets, Name: ref.Name, Key: ref.Key, Destination: destination})
	}

	return references
}
