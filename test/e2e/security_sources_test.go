package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// copyOf is an OmniSecretSync that copies a Secret.
func copyOf(t *testing.T, name, source string) *unstructured.Unstructured {
	t.Helper()

	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("NAME", name, "SOURCE", source).Replace(`
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata: {name: NAME}
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  sourceSecretRef: {name: SOURCE}
  targetSecretRef: {namespace: default, name: copy}
  deletionPolicy: Orphan
`)), &object.Object); err != nil {
		t.Fatal(err)
	}

	return object
}

var secretSyncs = v1alpha1.SchemeGroupVersion.WithResource("omnisecretsyncs")

// Secrets of the installation, of ServiceAccounts and of Helm are copied for nobody, and others are as before.
func TestProtectedSecretsAreNotCopied(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	client := dynamicFor(t, stack.RESTConfig()).Resource(secretSyncs).Namespace(s.name)

	for name, secret := range map[string]*corev1.Secret{
		"labelled": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelProtected: v1alpha1.ProtectedValue}}},
		"record":   {Type: "helm.sh/release.v1"},
		"open":     {},
	} {
		secret.Name, secret.Data = name, map[string][]byte{"key": []byte("canary")}
		must(stack.Client().CoreV1().Secrets(s.name).Create(t.Context(), secret, metav1.CreateOptions{}))(t)
		must(client.Create(t.Context(), copyOf(t, name, name), metav1.CreateOptions{}))(t)
	}

	for _, name := range []string{"labelled", "record"} {
		message := s.waitCondition("oss", name, v1alpha1.ConditionSourceFound, metav1.ConditionFalse, v1alpha1.ReasonSecretProtected)
		if !strings.Contains(message, `Secret "`+name+`"`) {
			t.Errorf("the message does not name the Secret: %s", message)
		}
	}

	s.waitCondition("oss", "open", v1alpha1.ConditionSourceFound, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// With --check-references a user with all rights to our kinds has no object use a Secret that they may not get.
func TestReferencesAreChecked(t *testing.T) {
	t.Parallel()

	hub, err := env.StartHub(t.Context(), env.Options{Progress: t.Output(), WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	if _, err := hub.StartOmniAPIServer(t.Context(), env.OmniAPIServerOptions{Args: []string{"--check-references"}}); err != nil {
		t.Fatal(err)
	}

	grantEditor(t, hub)

	client := dynamic.NewForConfigOrDie(must(hub.RESTConfigFor("editor"))(t)).Resource(secretSyncs).Namespace("default")

	if err := env.Eventually(t.Context(), eventually, "the rights", func(ctx context.Context) error {
		_, err := client.Create(ctx, copyOf(t, "a", "own"), metav1.CreateOptions{DryRun: dryRun})

		return err
	}); err != nil {
		t.Fatal(err)
	}

	const refusal = `spec.sourceSecretRef: user "editor" cannot get secrets "omni-apiserver-ca" in namespace "default"`

	_, err = client.Create(t.Context(), copyOf(t, "b", "omni-apiserver-ca"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("create: %v", err)
	}

	must(client.Create(t.Context(), copyOf(t, "a", "own"), metav1.CreateOptions{}))(t)

	stolen := []byte(`{"spec":{"sourceSecretRef":{"name":"omni-apiserver-ca"}}}`)
	if _, err := client.Patch(t.Context(), "a", types.MergePatchType, stolen, metav1.PatchOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("patch: %v", err)
	}

	if _, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"createNamespace":true}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another change: %v", err)
	}
}

// grantEditor lets the user editor write our kinds, and get two Secrets.
func grantEditor(t *testing.T, hub *env.Hub) {
	t.Helper()

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"own", "demo-kubeconfig"}, Verbs: []string{"get"}},
	}}
	must(hub.Client().RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}))(t)

	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Subjects: []rbacv1.Subject{subjectUser("editor")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
	}
	must(hub.Client().RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}))(t)
}
