package kubeclient

import (
	"encoding/json"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// otherManagers are the names under which other clients of Helm 4 own the fields that they have applied: its command line, and the
// controller of Flux.
func otherManagers() []string { return []string{"helm", "helm-controller"} }

// takeFields takes the fields of a release's objects from other clients that have applied them. What only they have applied is not
// in the chart any more, and goes: the release has applied its own before. Helm itself knows one manager, and a release that was
// taken over would keep for ever what its chart drops.
func (c *guardedClient) takeFields(targets kube.ResourceList) error {
	for _, info := range targets {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}

		for _, manager := range c.guard.managersBeside(object) {
			err := applyNothing(info, manager, object.GetUID())

			// Without a field that the server does not let go the object is as it was.
			if err != nil && !apierrors.IsInvalid(err) {
				return fmt.Errorf("%s: what the client %q of Helm has applied could not be taken from it: %w", drift.Identify(info), manager, err)
			}
		}
	}

	return nil
}

// managersBeside are the other clients of Helm that own fields of an object beside the release; none if the release has not applied
// it: a client-side update says nothing about who owns what. The object is as the server answered to its update.
func (g *Guard) managersBeside(object *unstructured.Unstructured) []string {
	var applied []string

	for _, entry := range object.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			applied = append(applied, entry.Manager)
		}
	}

	if !slices.Contains(applied, g.Release.FieldManager) {
		return nil
	}

	return slices.DeleteFunc(otherManagers(), func(manager string) bool { return !slices.Contains(applied, manager) })
}

// applyNothing applies an object as a manager that wants nothing of it any more. With its UID no other one is made.
func applyNothing(info *resource.Info, manager string, uid types.UID) error {
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	bare.SetGroupVersionKind(info.Mapping.GroupVersionKind)
	bare.SetName(info.Name)
	bare.SetNamespace(info.Namespace)
	bare.SetUID(uid)

	data, err := json.Marshal(bare.Object)
	if err != nil {
		return err
	}

	changed, err := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(manager).
		Patch(info.Namespace, info.Name, types.ApplyPatchType, data, nil)
	if err != nil {
		return err
	}

	return info.Refresh(changed, true)
}
