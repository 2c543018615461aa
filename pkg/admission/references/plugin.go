package references

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/initializer"
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

	on         bool
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ genericinitializer.WantsAuthorizer = &Plugin{}
	_ initializer.WantsReferenceCheck    = &Plugin{}
)

// New makes the plugin, which does nothing until SetCheckReferences turns it on.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// SetCheckReferences turns the plugin on or off.
func (p *Plugin) SetCheckReferences(on bool) { p.on = on }

// SetAuthorizer sets the authorizer that the plugin asks.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// ValidateInitialization fails if the plugin is on and has no authorizer.
func (p *Plugin) ValidateInitialization() error {
	if p.on && p.authorizer == nil {
		return fmt.Errorf("%s has no authorizer", PluginName)
	}

	return nil
}

// Validate refuses, as forbidden, the first new or changed reference to an object that the user may not get. It also
// refuses if the authorizer gives no answer.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.on || attributes.GetResource().Group != v1alpha1.GroupName || attributes.GetSubresource() != "" {
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

		if err := p.ask(ctx, attributes, reference); err != nil {
			return err
		}
	}

	return nil
}

// begun lists the references that were not there before.
func begun(before, now []Reference) []Reference {
	known := map[use]bool{}
	for _, reference := range before {
		known[reference.use()] = true
	}

	var fresh []Reference

	for _, reference := range now {
		if !known[reference.use()] {
			fresh = append(fresh, reference)
		}
	}

	return fresh
}

// ask asks whether the user may get the object that a reference names.
func (p *Plugin) ask(ctx context.Context, attributes admission.Attributes, reference Reference) error {
	decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: attributes.GetUserInfo(), Verb: "get", APIVersion: "v1", Resource: reference.Resource,
		Namespace: attributes.GetNamespace(), Name: reference.Name, ResourceRequest: true,
	})

	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: whether you may get %s %q could not be found out, try again: %v",
			reference.Field, reference.Resource, reference.Name, err))
	}

	refusal := fmt.Sprintf("%s: user %q cannot get %s %q in namespace %q, and so cannot have an object use it: ask for that right, or have somebody with it make this change",
		reference.Field, attributes.GetUserInfo().GetName(), reference.Resource, reference.Name, attributes.GetNamespace())
	if reason != "" {
		refusal += " (" + reason + ")"
	}

	return admission.NewForbidden(attributes, errors.New(refusal))
}
