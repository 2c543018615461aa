package kubeclient

import (
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// Guard stands between one action of Helm and the workload cluster. Helm asks whose an object is when it makes it for the
// first time; later it writes whatever its manifests name, and removes what they do not name any more.
type Guard struct {
	// Release is the one that the action is about.
	Release drift.Release
	// TakeOwnership lets the action write over objects of others.
	TakeOwnership bool
	// Choose is asked before an update removes objects: due are those that the former manifest of the release names and the
	// new one does not, and only what it returns is removed. Its error ends the update before that changes anything. Nil
	// removes all of them. What an uninstall removes is not asked about.
	Choose func(due kube.ResourceList) (kube.ResourceList, error)
	// Left finds what else is to be removed when the objects of the new manifest are written, which names none of it. Its
	// error ends the update before that changes anything. Nil finds nothing.
	Left func() (kube.ResourceList, error)
	// LeftOut is told of objects of older revisions whose kinds the cluster does not serve any more: the action goes on without
	// them. Nil lets it fail.
	LeftOut func(objects []drift.Object)
	// Hooked reports whether a hook that the action has run names an object: it bears no marks then. Nil: none does.
	Hooked func(info *resource.Info) bool
	// Needed is a manifest of an older revision whose objects are to be made: nothing of it is left out.
	Needed string
	// ServerSide says that the action's updates are applied by the server: who owns a field decides whether it goes then.
	ServerSide bool

	clients   action.RESTClientGetter
	unserved  map[schema.GroupKind]bool // kinds that are known to be
	deletions deletions
}

// Watch makes a guard look at what an action does. The error is that of a configuration without the client that Helm makes.
func (g *Guard) Watch(config *action.Configuration) error {
	client, err := clientOf(config)
	if err != nil {
		return err
	}

	config.KubeClient, g.clients = &guardedClient{Client: client, guard: g}, config.RESTClientGetter

	return nil
}

// clientOf returns the client that Helm made for a configuration. It fails if there is another one.
func clientOf(config *action.Configuration) (*kube.Client, error) {
	client, ok := config.KubeClient.(*kube.Client)
	if !ok {
		return nil, fmt.Errorf("the client of Helm has the unknown type %T", config.KubeClient)
	}

	return client, nil
}

// objection says why an object must not be written over what was found; empty if it may. Known says that the former manifest names it.
func (g *Guard) objection(info *resource.Info, there found, known bool) string {
	switch {
	case g.TakeOwnership:
		return ""
	case there.other != "":
		return fmt.Sprintf("%s belongs to Helm release %s: take it out of one of the two charts, or set takeOwnership", drift.Identify(info), there.other)
	case there.live != nil && !there.ours && !known && !g.madeByHook(info, there.live):
		return fmt.Sprintf("%s exists and bears no marks of a release: delete it, or set takeOwnership", drift.Identify(info))
	default:
		return ""
	}
}

// madeByHook reports whether a hook that the action has run made an object. Somebody else may have made one of that name since.
func (g *Guard) madeByHook(info *resource.Info, live map[string]any) bool {
	return g.Hooked != nil && g.Hooked(info) && g.Release.Wrote(live)
}

// found is an object as the cluster has it.
type found struct {
	live  map[string]any // nil if there is none
	ours  bool           // it bears the marks of the release
	other string         // the other release whose marks it bears
}

// find looks for an object, and tells whose it is.
func (g *Guard) find(info *resource.Info) (found, error) {
	live, there, err := g.Live(info)
	if err != nil {
		return found{}, fmt.Errorf("whose %s is cannot be told: %w", drift.Identify(info), err)
	}

	if !there {
		return found{}, nil
	}

	ours, other := g.Release.Whose(live)

	return found{live: live, ours: ours, other: other}, nil
}

func (g *Guard) left() (kube.ResourceList, error) {
	if g.Left == nil {
		return nil, nil
	}

	return g.Left()
}

// guardedClient is Helm's client, with a guard.
type guardedClient struct {
	*kube.Client

	guard *Guard
}

// Update implements kube.Interface. An object that stays in the manifest keeps its original, which Helm needs for a
// three-way merge.
func (c *guardedClient) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	applied, err := c.guard.lookAt(originals, targets)
	if err != nil {
		return &kube.Result{}, fmt.Errorf("no object was changed, because %w", err) // Helm looks into the result
	}

	if c.guard.Choose != nil {
		removed, err := c.guard.Choose(originals.Difference(targets))
		if err != nil {
			return &kube.Result{}, err
		}

		originals = append(originals.Intersect(targets), removed...)
	}

	left, err := c.guard.left()
	if err != nil {
		return &kube.Result{}, err
	}

	if err := c.guard.takeFields(applied); err != nil {
		return &kube.Result{}, err
	}

	return c.update(append(originals, left...), targets, options...)
}

// lookAt looks at what an update is to write, and returns what other clients of Helm have applied of it. The error is of an object
// that must not be written.
func (g *Guard) lookAt(originals, targets kube.ResourceList) ([]appliedObject, error) {
	var applied []appliedObject

	for _, info := range targets {
		there, err := g.find(info)
		if err != nil {
			return nil, err
		}

		if objection := g.objection(info, there, originals.Contains(info)); objection != "" {
			return nil, errors.New(objection)
		}

		if manager := there.appliedBy(); g.ServerSide && manager != "" {
			applied = append(applied, appliedObject{info, manager})
		}
	}

	return applied, nil
}

// update is Helm's update. That reads what it is to remove, and goes on in silence if it cannot: no record would name the
// object any more. It is read again here, and what is there still is an error, so that the next revision removes it.
func (c *guardedClient) update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	result, err := c.Client.Update(originals, targets, options...)
	if err != nil {
		return result, err
	}

	for _, info := range originals.Difference(targets).Difference(result.Deleted) {
		if err := c.guard.mustGo(info); err != nil {
			return result, fmt.Errorf("%s is not in the chart any more, and was not removed: %w", drift.Identify(info), err)
		}
	}

	return result, nil
}

// mustGo says why an object that an update has not removed may not stay; nil if it may.
func (g *Guard) mustGo(info *resource.Info) error {
	live, there, err := g.Live(info)
	if err != nil || !there {
		return err
	}

	object := unstructured.Unstructured{Object: live}
	ours, _ := g.Release.Whose(live)

	if !ours || object.GetDeletionTimestamp() != nil || object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy {
		return nil
	}

	return errors.New("it could not be read when it was to go, and is there still")
}

// Create implements kube.Interface. It makes the objects of an install, or those of a hook, which bear no marks: what a
// hook writes over cannot be taken over.
func (c *guardedClient) Create(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	if !slices.ContainsFunc(resources, c.guard.marks) {
		for _, info := range resources {
			if err := c.guard.mayReplace(info); err != nil {
				return nil, err
			}
		}

		return c.Client.Create(resources, options...)
	}

	// Helm has looked already, but hooks may have run since. What has no marks may be theirs.
	for _, info := range resources {
		if c.guard.TakeOwnership {
			break
		}

		there, err := c.guard.find(info)
		if err != nil {
			return nil, err
		}

		if objection := c.guard.objection(info, there, true); objection != "" {
			return nil, errors.New(objection)
		}
	}

	return c.install(resources, options...)
}

// install makes the objects of an install, and removes what attempts before it have left, as an update does.
func (c *guardedClient) install(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	left, err := c.guard.left()
	if err != nil {
		return nil, err
	}

	result, err := c.Client.Create(resources, options...)
	if err != nil || len(left) == 0 {
		return result, err
	}

	_, err = c.update(left.Difference(resources), nil)

	return result, err
}

// Delete implements kube.Interface. Helm removes hooks by their names before it makes them, and after that.
func (c *guardedClient) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	for _, info := range resources {
		if err := c.guard.mayReplace(info); err != nil {
			return nil, []error{err}
		}
	}

	return c.Client.Delete(resources, policy)
}

// marks reports whether Helm has put the marks of the release on an object that it is about to make.
func (g *Guard) marks(info *resource.Info) bool {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return false
	}

	ours, _ := g.Release.Whose(object.Object)

	return ours
}

// mayReplace is an error if an object is another release's, also with TakeOwnership.
func (g *Guard) mayReplace(info *resource.Info) error {
	there, err := g.find(info)
	if err == nil && there.other != "" {
		err = fmt.Errorf("%s belongs to Helm release %s: if it has the name of a hook of the chart, give the hook another one, or set disableHooks", drift.Identify(info), there.other)
	}

	return err
}
