package references

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
	"omni.texashpc.com/omni-cluster-operator/pkg/admission/permission"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// PluginName is the plugin's name in the admission flags.
const PluginName = "OmniReferences"

// MaxNew is how many different Secrets and ConfigMaps one request may add: each one costs a request to the management
// cluster.
const MaxNew = 100

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses new or changed references to Secrets and ConfigMaps that the user may not get.
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

// New makes the plugin, which does nothing until SetCheckReferences turns it on.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetCheckReferences turns the plugin on or off.
func (p *Plugin) SetCheckReferences(on bool) { p.checkReferences = on }

// ValidateInitialization fails if the plugin is on and has no authorizer.
func (p *Plugin) ValidateInitialization() error {
	if !p.checkReferences {
		return nil
	}

	return p.Initialized(PluginName)
}

// Validate refuses, as forbidden, the first new or changed reference to an object that the user may not get. It also
// refuses if the authorizer gives no answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
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
func reads(namespace string, reference Reference) permission.Question {
	return permission.Question{
		Field:     reference.Field,
		Right:     authorizer.AttributesRecord{Verb: "get", APIVersion: "v1", Resource: reference.Resource, Namespace: namespace, Name: reference.Name},
		Act:       fmt.Sprintf("get %s %q in namespace %q", reference.Resource, reference.Name, namespace),
		Otherwise: "and so cannot have an object use it",
	}
}
