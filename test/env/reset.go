package env

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// resetTimeout bounds Reset, in time. Namespaces with a few objects go in two seconds, and in passes of the namespace
// controller that are further and further apart when that is not enough. One that hangs never goes.
const resetTimeout = 4 * time.Minute

// Reset empties a cluster for its next use: it deletes every namespace but those of Kubernetes,
// everything in default that its controllers do not make again, custom resource definitions, and
// RBAC that is not Kubernetes' own; and waits until the namespaces are gone. It needs the
// controller manager. kube-system stays as it is.
func (h *Hub) Reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()

	client, err := dynamic.NewForConfig(h.RESTConfig())
	if err != nil {
		return fmt.Errorf("reset cluster: %w", err)
	}

	for _, step := range []func(context.Context, dynamic.Interface) error{h.deleteOwnRBAC, h.emptyDefault, h.deleteNamespaces} {
		if err := step(ctx, client); err != nil {
			return fmt.Errorf("reset cluster: %w", err)
		}
	}

	return nil
}

// deleteOwnRBAC also deletes custom resource definitions: all that is not namespaced.
func (h *Hub) deleteOwnRBAC(ctx context.Context, client dynamic.Interface) error {
	for _, resource := range []schema.GroupVersionResource{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	} {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: "!kubernetes.io/bootstrapping"})
		if err != nil {
			return err
		}

		for i := range list.Items {
			err := client.Resource(resource).Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}

	return nil
}

// emptyDefault deletes everything in the namespace default; what Kubernetes wants there comes
// back by itself.
func (h *Hub) emptyDefault(ctx context.Context, client dynamic.Interface) error {
	lists, err := h.client.Discovery().ServerPreferredNamespacedResources()
	if err != nil && len(lists) == 0 {
		return err
	}

	background := metav1.DeletePropagationBackground

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "deletecollection"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}

		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || resource.Name == "events" || resource.Name == "endpoints" {
				continue
			}

			err := client.Resource(version.WithResource(resource.Name)).Namespace(metav1.NamespaceDefault).
				DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				return fmt.Errorf("empty %s: %w", resource.Name, err)
			}
		}
	}

	return nil
}

func (h *Hub) deleteNamespaces(ctx context.Context, _ dynamic.Interface) error {
	namespaces := h.client.CoreV1().Namespaces()

	own := func(ctx context.Context) ([]string, error) {
		list, err := namespaces.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}

		var names []string

		for i := range list.Items {
			name := list.Items[i].Name
			if !slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name) {
				names = append(names, name)
			}
		}

		return names, nil
	}

	names, err := own(ctx)
	if err != nil {
		return err
	}

	for _, name := range names {
		if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}

	return Eventually(ctx, resetTimeout, "the namespaces to go", func(ctx context.Context) error {
		names, err := own(ctx)
		if err == nil && len(names) > 0 {
			err = errors.New(strings.Join(names, ", "))
		}

		return err
	})
}
