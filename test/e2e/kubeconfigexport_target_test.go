package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// exportsNamespace is the one besides their own to which exports may write, by the controller's command line.
const exportsNamespace = "e2e-exports"

// A kubeconfig goes into another namespace only if the controller's command line names it and whoever asks for it may write
// Secrets there.
func TestKubeconfigExportIntoAnotherNamespace(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	alice := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: e.user("alice")}
	secret := e.name + "-access"
	manifest := strings.Replace(exportManifest("robot", secret, "robot", "deployers"), "{name: "+secret+"}", "{name: "+secret+", namespace: "+exportsNamespace+"}", 1)

	if _, err := stack.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exportsNamespace}}, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}

	bind(t, e.name, "edit", alice)

	asAlice := func() error {
		_, err := e.tryInput(manifest, "--as="+alice.Name, "apply", "-f", "-")

		return err
	}

	const refused = `cannot create Secrets in namespace "e2e-exports", and so cannot have a kubeconfig written there`

	e.wait("the refusal", func() error {
		if err := asAlice(); err == nil || !strings.Contains(err.Error(), refused) {
			return fmt.Errorf("%v", err)
		}

		return nil
	})

	e.mayWriteSecrets(exportsNamespace, alice)
	e.wait("the right to count", asAlice)
	e.ready("robot")

	read := func() (*corev1.Secret, error) {
		return stack.Client().CoreV1().Secrets(exportsNamespace).Get(context.Background(), secret, metav1.GetOptions{})
	}

	found, err := read()
	if err != nil || found.Labels[v1alpha1.LabelCluster] != "demo" || found.Annotations[v1alpha1.AnnotationExportNamespace] != e.name || len(found.Data["value"]) == 0 {
		t.Fatalf("%v: %+v", err, found.ObjectMeta)
	}

	// What somebody changes there is put right, so an event of that namespace arrives.
	if _, _, err := stack.Kubectl(t.Context(), "-n", exportsNamespace, "patch", "secret", secret, "-p", `{"data":{"value":"ZXZpbA=="}}`); err != nil {
		t.Fatal(err)
	}

	e.wait("the repair", func() error {
		found, err := read()
		if err == nil && string(found.Data["value"]) == "evil" {
			err = errors.New("it is still changed")
		}

		return err
	})

	// Who may not write there may not lead it elsewhere either.
	bob := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: e.user("bob")}
	bind(t, e.name, "admin", bob)

	redirect := func(who rbacv1.Subject, field string) error {
		_, err := e.try("patch", "omniconnection", "omni", "--as="+who.Name, "--dry-run=server", "--type=merge", "-p", `{"spec":{`+field+`}}`)

		return err
	}

	e.wait("bob's right to count", func() error { return redirect(bob, `"suspend":null`) })

	if err := redirect(bob, `"endpoint":"https://elsewhere.example.com"`); err == nil ||
		!strings.Contains(err.Error(), `cannot decide where the kubeconfig leads that OmniKubeconfigExport "robot" writes there`) {
		t.Errorf("another endpoint: %v", err)
	}

	if err := redirect(alice, `"endpoint":"https://elsewhere.example.com"`); err != nil {
		t.Errorf("another endpoint, by who may write there: %v", err)
	}

	e.run("delete", "oke", "robot")

	if _, err := read(); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion of its export: %v", err)
	}
}

// mayWriteSecrets gives a user the right to create and update Secrets of a namespace.
func (e *exporting) mayWriteSecrets(namespace string, user rbacv1.Subject) {
	e.t.Helper()

	name := strings.ReplaceAll(user.Name, "@", "-")

	if _, err := stack.Client().RbacV1().Roles(namespace).Create(e.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "update"}}},
	}, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}

	bindRole(e.t, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, user)
}

// A target in a namespace that the command line does not name waits, and says so.
func TestKubeconfigExportIntoANamespaceNotAllowed(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.apply(strings.Replace(exportManifest("robot", "access", "robot", "deployers"), "{name: access}", "{name: access, namespace: default}", 1))

	message := e.waitCondition("oke", "robot", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
	if !strings.Contains(message, "--export-namespaces") {
		t.Error(message)
	}
}
