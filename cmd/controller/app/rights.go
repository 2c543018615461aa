package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
)

// rolloutPolicies is the resource that a controller needs with --rollouts.
const rolloutPolicies = "omnirolloutpolicies"

// rightsOf returns the rights that a controller with these flags needs: in the namespace that it serves (empty: all),
// in the namespace of its lease, in the namespaces to which exports may write, and in the cluster. The deployment's
// roles give these rights; a test compares the two.
func rightsOf(served string, options *Options) []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes

	leases := options.leaseNamespace()

	add := func(namespace, group, resource, name string, verbs ...string) {
		resource, subresource, _ := strings.Cut(resource, "/")

		for _, verb := range verbs {
			rights = append(rights, authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb,
			})
		}
	}

	for _, kind := range kinds() {
		add(served, v1alpha1.GroupName, kind, "", "get", "list", "watch", "update", "patch")
		add(served, v1alpha1.GroupName, kind+"/status", "", "get", "update", "patch")
		add("", "apiextensions.k8s.io", "customresourcedefinitions", kind+"."+v1alpha1.GroupName, "get")
	}

	if options.Rollouts {
		add(served, v1alpha1.GroupName, rolloutPolicies, "", "get", "list", "watch")
		add(served, v1alpha1.GroupName, rolloutPolicies+"/status", "", "get", "update", "patch")
	}

	add(served, "", "secrets", "", "get", "list", "watch", "create", "update", "patch", "delete")
	add(served, "", "configmaps", "", "get", "list", "watch")
	add(served, "", "namespaces", served, "get")
	add(served, "events.k8s.io", "events", "", "create", "patch")
	add(leases, "coordination.k8s.io", "leases", leaseName, "get", "update")
	add(leases, "coordination.k8s.io", "leases", "", "create")

	if options.RoleBinding != "" {
		addDeletionRights(add, served, options)
	}

	if options.HubID == "" {
		add(metav1.NamespaceSystem, "", "namespaces", metav1.NamespaceSystem, "get")
	}

	for _, target := range options.ExportNamespaces {
		rights = append(rights, exportRights(target)...)
	}

	if options.Metrics.Secure {
		add("", "authentication.k8s.io", "tokenreviews", "", "create")
		add("", "authorization.k8s.io", "subjectaccessreviews", "", "create")
	}

	return rights
}

// addDeletionRights adds what it takes to keep the controller's own rights while the namespace that it serves is being deleted, or to
// release those that others have left in all namespaces.
func addDeletionRights(add func(namespace, group, resource, name string, verbs ...string), served string, options *Options) {
	add(served, rbacv1.GroupName, "rolebindings", controllers.DeletionBinding(options.RoleBinding), "get", "patch", "delete")

	if options.AllNamespaces {
		add(served, "coordination.k8s.io", "leases", leaseName, "get", "patch")

		return
	}

	add(served, rbacv1.GroupName, "rolebindings", options.RoleBinding, "get")
	add(served, rbacv1.GroupName, "rolebindings", "", "create")
	add(options.leaseNamespace(), "coordination.k8s.io", "leases", leaseName, "patch")
}

// ownRightsOf returns those of rightsOf that are for objects of our kinds.
func ownRightsOf(served string, options *Options) []authorizationv1.ResourceAttributes {
	return slices.DeleteFunc(rightsOf(served, options), func(right authorizationv1.ResourceAttributes) bool {
		return right.Group != v1alpha1.GroupName
	})
}

// described returns a right as text.
func described(right authorizationv1.ResourceAttributes) string {
	resource := right.Resource
	if right.Group != "" {
		resource += "." + right.Group
	}

	for _, part := range []struct{ before, text string }{{"/", right.Subresource}, {" ", right.Name}, {" in ", right.Namespace}} {
		if part.text != "" {
			resource += part.before + part.text
		}
	}

	return fmt.Sprintf("%s %s", right.Verb, resource)
}

// rightsAtOnce is how many questions for a right are open at a time. There are about a hundred, and kube-apiserver may
// have to ask a webhook for each.
const rightsAtOnce = 10

// accountRights asks the hub for the rights of the controller's account.
type accountRights struct {
	reviews authorizationclient.SelfSubjectAccessReviewInterface
}

// missing returns those of the rights that the account does not have. With an error for some of them, it returns
// what it found out about the others.
func (a accountRights) missing(ctx context.Context, rights []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	lacks := make([]bool, len(rights))

	var asked errgroup.Group // one that cannot be answered ends none of the others

	asked.SetLimit(rightsAtOnce)

	for i, right := range rights {
		asked.Go(func() error {
			allowed, err := a.allowed(ctx, right)
			lacks[i] = err == nil && !allowed

			return err
		})
	}

	err := asked.Wait()

	var missing []authorizationv1.ResourceAttributes

	for i, right := range rights {
		if lacks[i] {
			missing = append(missing, right)
		}
	}

	return missing, err
}

// allowed asks the hub for one right.
func (a accountRights) allowed(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}

	answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the rights of the account: %w", err)
	}

	return answer.Status.Allowed, nil
}
