package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// An Admin of Omni deletes the key that signed an exported kubeconfig. The first reader that gets a 401, here an OmniSecretSync,
// has the export make another one at once, and goes on with it; nobody waits for the renewal, a day later.
func TestSigningKeyIsDeleted(t *testing.T) {
	t.Parallel()

	e := &exporting{fleetWith(newSpace(t), omnisim.Options{Phase: phase, OmniVersion: "1.11"})}
	e.cluster("demo")
	hub := e.attach()

	_, err := hub.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "deployers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	e.apply(exportManifest("robot", "demo-kubeconfig", "robot", "deployers"), sourceManifest("one"), fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata:
  name: registry
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  sourceSecretRef: {name: registry}
  targetSecretRef: {name: copy, namespace: default}
`))
	e.ready("robot")
	e.waitCondition("oss", "registry", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	before := e.status("robot")

	if err := e.omni.DeleteSigningKeys(t.Context()); err != nil {
		t.Fatal(err)
	}

	e.apply(sourceManifest("two"))
	e.wait("the copy of the new password", func() error {
		copied, err := hub.Client().CoreV1().Secrets("default").Get(t.Context(), "copy", metav1.GetOptions{})
		if err != nil || string(copied.Data["password"]) != "two" {
			return fmt.Errorf("it has %q, %w", copied.Data["password"], err)
		}

		return nil
	})
	e.ready("robot")
	e.waitCondition("oss", "registry", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	if after := e.status("robot"); after.KubeconfigHash == before.KubeconfigHash || e.asked() != 2 {
		t.Errorf("Omni was asked %d times, want 2; the kubeconfig is another: %t", e.asked(), after.KubeconfigHash != before.KubeconfigHash)
	}

	e.wait("the event", func() error {
		if events := e.run("get", "events", "-o", "yaml"); !strings.Contains(events, "Omni deleted the key that signed the old one") {
			return errors.New("there is none")
		}

		return nil
	})

	if secret := get[corev1.Secret](e.space, "secret", "demo-kubeconfig"); len(secret.Data["kubeconfig"]) == 0 {
		t.Error("the Secret is empty")
	}

	e.tokenIsNeverShown("demo-kubeconfig")
}
