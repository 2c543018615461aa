package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// SystemNamespace is where the operator's own Service and service accounts live.
const SystemNamespace = "omni-cluster-operator-system"

// Names that the deployment gives to the operator's programs, identities and roles.
const (
	apiServerName  = "omni-apiserver"
	controllerName = "omni-controller"
)

// deploymentFile returns the path of a file of artifacts/kustomize/base, which is what users install.
func deploymentFile(name string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}

	return filepath.Join(root, "artifacts", "kustomize", "base", name+".yaml"), nil
}

// applyDeployment applies the namespace and the RBAC files that users install. The processes run
// with exactly these rights, so that a missing rule shows in tests.
func (h *Hub) applyDeployment(ctx context.Context) error {
	args := []string{"apply"}

	for _, name := range []string{"namespace", "rbac-apiserver", "rbac-controller", "rbac-users"} {
		path, err := deploymentFile(name)
		if err != nil {
			return err
		}

		args = append(args, "-f", path)
	}

	if _, _, err := h.Kubectl(ctx, args...); err != nil {
		return fmt.Errorf("apply deployment: %w", err)
	}

	return h.applyServedRole(ctx)
}

// servedRendering is what the chart renders where controllers serve other namespaces than the operator's own, written by TestGolden
// of test/deploy.
const servedRendering = "test/deploy/testdata/golden/everything.yaml"

// applyServedRole gives the controller's role the rights that it has where other namespaces are served, as in most tests: users who
// install the files of applyDeployment serve the operator's own, which takes fewer.
func (h *Hub) applyServedRole(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}

	content, err := os.ReadFile(filepath.Join(root, servedRendering))
	if err != nil {
		return fmt.Errorf("read the controller's role: %w", err)
	}

	for document := range strings.SplitSeq(string(content), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil || role.Kind != "ClusterRole" || role.Name != controllerName {
			continue // another object
		}

		if _, err := h.client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("apply the controller's role: %w", err)
		}

		return nil
	}

	return fmt.Errorf("there is no ClusterRole %s in %s", controllerName, servedRendering)
}

// serviceAccountKubeconfig writes a kubeconfig for a service account of the operator. A client
// certificate with the account's name and groups stands in for its token: RBAC sees no
// difference, and it does not expire during a long test.
func (h *Hub) serviceAccountKubeconfig(name string) (string, error) {
	return h.KubeconfigFor("system:serviceaccount:"+SystemNamespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+SystemNamespace)
}

// grantController gives the controller its rights in one namespace, or, if namespace is empty,
// in all, with its lease where the operator lives. Which rights, and whose, is what the deployment
// says for its own namespace.
func (h *Hub) grantController(ctx context.Context, namespace string) error {
	// A second controller of the namespace finds the rights of the first.
	if err := errors.Join(
		ignoreExisting(h.bindController(ctx, namespace)),
		h.grantLease(ctx, cmp.Or(namespace, SystemNamespace)),
	); err != nil {
		return fmt.Errorf("grant the controller its rights: %w", err)
	}

	return nil
}

// bindController binds the controller's role in one namespace, or, if namespace is empty, in all.
func (h *Hub) bindController(ctx context.Context, namespace string) error {
	deployed := &rbacv1.RoleBinding{}
	if err := readDeployment("rbac-namespaces", deployed); err != nil {
		return err
	}

	meta := metav1.ObjectMeta{Name: deployed.Name, Namespace: namespace}

	if namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: deployed.RoleRef, Subjects: deployed.Subjects}
		_, err := h.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})

		return err
	}

	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: deployed.RoleRef, Subjects: deployed.Subjects}
	_, err := h.client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})

	return err
}

// grantLease gives the controller the right to its lease in a namespace.
func (h *Hub) grantLease(ctx context.Context, namespace string) error {
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	if err := readDeployment("rbac-lease", role, binding); err != nil {
		return err
	}

	role.Namespace, binding.Namespace = namespace, namespace
	_, roleErr := h.client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{})
	_, bindingErr := h.client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})

	return errors.Join(ignoreExisting(roleErr), ignoreExisting(bindingErr))
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}

// readDeployment reads the objects of a file of the deployment, which begins with a comment.
func readDeployment(name string, into ...any) error {
	path, err := deploymentFile(name)
	if err != nil {
		return err
	}

	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the deployment: %w", err)
	}

	documents := strings.Split(string(content), "\n---\n")[1:]
	if len(documents) != len(into) {
		return fmt.Errorf("read the deployment: %s has %d objects, not %d", path, len(documents), len(into))
	}

	for i, document := range documents {
		// Strict: a Role is no RoleBinding.
		if err := yaml.UnmarshalStrict([]byte(document), into[i]); err != nil {
			return fmt.Errorf("read the deployment: %s: %w", path, err)
		}
	}

	return nil
}
