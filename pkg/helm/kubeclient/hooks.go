package kubeclient

import (
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

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
