package env

import (
	"context"
	"fmt"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SystemNamespace is where the operator's own Service and service accounts live.
const SystemNamespace = "omni-cluster-operator-system"

// Names that artifacts/deploy gives to the operator's identities and roles.
const (
	apiServerName  = "omni-apiserver"
	controllerName = "omni-controller"
)

// applyDeployment applies the namespace and RBAC files of artifacts/deploy. The processes run
// with exactly these rights, so that a missing rule shows in tests.
func (h *Hub) applyDeployment(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}

	args := []string{"apply"}
	for _, name := range []string{"namespace", "rbac-apiserver", "rbac-controller", "rbac-users"} {
		args = append(args, "-f", filepath.Join(root, "artifacts", "deploy", name+".yaml"))
	}

	if _, _, err := h.Kubectl(ctx, args...); err != nil {
		return fmt.Errorf("apply deployment: %w", err)
	}

	return nil
}

// serviceAccountKubeconfig writes a kubeconfig for a service account of the operator. A client
// certificate with the account's name and groups stands in for its token: RBAC sees no
// difference, and it does not expire during a long test.
func (h *Hub) serviceAccountKubeconfig(name string) (string, error) {
	return h.KubeconfigFor("system:serviceaccount:"+SystemNamespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+SystemNamespace)
}

// grantController binds the controller's role in one namespace, or, if namespace is empty,
// in all.
func (h *Hub) grantController(ctx context.Context, namespace string) error {
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: controllerName}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: controllerName, Namespace: SystemNamespace}}
	meta := metav1.ObjectMeta{Name: controllerName, Namespace: namespace}

	var err error
	if namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
		_, err = h.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	} else {
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
		_, err = h.client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	}

	// A second controller of the namespace finds the binding of the first.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind the role of the controller: %w", err)
	}

	return nil
}
