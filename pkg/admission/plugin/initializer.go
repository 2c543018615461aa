// Package plugin has the admission plugins of omni-apiserver, and hands them what they need: a view of this server's own
// objects, the authorizer, and choices of the command line.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// Register makes our plugins known, and returns their names in the order in which they run.
func Register(plugins *admission.Plugins) []string {
	ours := []struct {
		name string
		make func() admission.Interface
	}{
		{ClusterNamePlugin, func() admission.Interface { return NewClusterName() }},
		{ControlPlaneCountPlugin, func() admission.Interface { return NewControlPlaneCount() }},
		{ControllerNamespacesPlugin, func() admission.Interface { return NewControllerNamespaces() }},
		{ReferencesPlugin, func() admission.Interface { return NewReferences() }},
		{ExportTargetPlugin, func() admission.Interface { return NewExportTarget() }},
		{RolloutOverridePlugin, func() admission.Interface { return NewRolloutOverride() }},
		{OwnerReferencesPlugin, func() admission.Interface { return NewOwnerReferences() }},
	}

	names := make([]string, 0, len(ours))
	for _, one := range ours {
		plugins.Register(one.name, func(io.Reader) (admission.Interface, error) { return one.make(), nil })
		names = append(names, one.name)
	}

	return names
}

// WantsInformers is implemented by plugins that read other objects of this server.
type WantsInformers interface {
	admission.InitializationValidator

	// SetInformers is called once, before the factory starts.
	SetInformers(externalversions.SharedInformerFactory)
}

// WantsControllerNamespaces is implemented by plugins that need the namespaces in which controllers work.
type WantsControllerNamespaces interface {
	admission.InitializationValidator

	// SetControllerNamespaces is called once. No namespaces mean that controllers work everywhere.
	SetControllerNamespaces([]string)
}

// WantsReferenceCheck is implemented by plugins that a flag of the command line turns on.
type WantsReferenceCheck interface {
	admission.InitializationValidator

	// SetCheckReferences is called once.
	SetCheckReferences(on bool)
}

// Choices are settings from the command line.
type Choices struct {
	// ControllerNamespaces are where controllers work; none means everywhere.
	ControllerNamespaces []string
	// CheckReferences refuses references to Secrets and ConfigMaps that the user who writes them may not get.
	CheckReferences bool
}

// Initializer initializes our plugins and ignores all others.
type Initializer struct {
	informers externalversions.SharedInformerFactory
	choices   Choices
}

var _ admission.PluginInitializer = Initializer{}

// NewInitializer makes an initializer. The caller who made the factory starts it, after the plugins were made.
func NewInitializer(informers externalversions.SharedInformerFactory, choices Choices) Initializer {
	return Initializer{informers: informers, choices: choices}
}

// Initialize calls the setters that a plugin has.
func (i Initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsInformers); ok {
		wants.SetInformers(i.informers)
	}

	if wants, ok := plugin.(WantsControllerNamespaces); ok {
		wants.SetControllerNamespaces(i.choices.ControllerNamespaces)
	}

	if wants, ok := plugin.(WantsReferenceCheck); ok {
		wants.SetCheckReferences(i.choices.CheckReferences)
	}
}

// indexName is the one index of an informer that a plugin uses.
const indexName = "plugin"

// Index has the objects of one kind, each with only what a plugin reads of it, and finds them by a key.
type Index[T metav1.Object] struct {
	informer cache.SharedIndexInformer
	err      error
}

// Use takes the kind's informer, before it starts: only strips an object, keys are those by which it is found. No other plugin may
// use the kind in this way.
func (i *Index[T]) Use(informer cache.SharedIndexInformer, only func(T) T, keys func(T) []string) {
	i.informer = informer

	i.err = informer.SetTransform(func(obj any) (any, error) {
		if one, ok := obj.(T); ok {
			return only(one), nil
		}

		return obj, nil
	})
	if i.err != nil {
		return
	}

	i.err = informer.AddIndexers(cache.Indexers{indexName: func(obj any) ([]string, error) {
		one, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("%T is not a %T", obj, one)
		}

		return keys(one), nil
	}})
}

// Initialized returns an error, with the name of the plugin, if Use was not called or had no effect.
func (i *Index[T]) Initialized(plugin string) error {
	if i.informer == nil {
		return fmt.Errorf("%s has no informers", plugin)
	}

	return i.err
}

// HasSynced reports whether all objects are known.
func (i *Index[T]) HasSynced() bool { return i.informer.HasSynced() }

// By returns the objects that have a key, sorted by namespace and name: an answer to a user is the same each time.
func (i *Index[T]) By(key string) ([]T, error) {
	found, err := i.informer.GetIndexer().ByIndex(indexName, key)
	if err != nil {
		return nil, err
	}

	objects := make([]T, 0, len(found))
	for _, one := range found {
		objects = append(objects, one.(T)) //nolint:forcetypeassert // the informer's own kind
	}

	slices.SortFunc(objects, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})

	return objects, nil
}

// Asker asks the authorizer of the API server. Plugins embed it.
type Asker struct{ authorizer authorizer.Authorizer }

// SetAuthorizer sets the authorizer that is asked.
func (a *Asker) SetAuthorizer(authorizer authorizer.Authorizer) { a.authorizer = authorizer }

// Initialized returns an error, with the name of the plugin, if there is no authorizer.
func (a *Asker) Initialized(plugin string) error {
	if a.authorizer == nil {
		return fmt.Errorf("%s has no authorizer", plugin)
	}

	return nil
}

// Question is what the user of a request must be allowed to do.
type Question struct {
	// Field of the object asks for it.
	Field string
	// Right is what is asked of the authorizer, without the user.
	Right authorizer.AttributesRecord
	// Act is the same for messages, such as `get secrets "a" in namespace "b"`.
	Act string
	// Otherwise is what a user without the right cannot have, for messages: the end of a sentence that says what the user
	// cannot do.
	Otherwise string
}

// Ask returns nil if the user of the request may do it. Else it refuses the request: as forbidden, or, if the authorizer
// gives no answer, as unavailable.
func (a *Asker) Ask(ctx context.Context, attributes admission.Attributes, question Question) error {
	right := question.Right
	right.User, right.ResourceRequest = attributes.GetUserInfo(), true

	decision, reason, err := a.authorizer.Authorize(ctx, right)

	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: whether you may %s could not be found out, try again: %v", question.Field, question.Act, err))
	}

	refusal := fmt.Sprintf("%s: user %q cannot %s, %s: ask for that right, or have somebody with it make this change",
		question.Field, right.User.GetName(), question.Act, question.Otherwise)
	if reason != "" {
		refusal += " (" + reason + ")"
	}

	return admission.NewForbidden(attributes, errors.New(refusal))
}
