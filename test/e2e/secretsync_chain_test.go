package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// newChain is an export whose kubeconfig a sync and a release use, through the proxy of Omni.
func newChain(t *testing.T) *releasing {
	t.Helper()

	e := newExporting(t)
	hub := e.attach()
	d := releasingIn(&delivery{fleet: e.fleet, hub: hub, apps: e.name})

	if _, err := hub.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.apps}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	_, err := hub.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "deployers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	d.apply(sourceManifest("one"))
	d.apply(exportManifest("robot", "demo-kubeconfig", "robot", "deployers"))
	d.apply(d.syncManifest("pull", deletes), d.release())
	d.ready("oss", "registry")
	d.ready("ohr", "app")
	d.waitKstatus("oke", "robot", status.CurrentStatus)
	d.waitKstatus("oss", "registry", status.CurrentStatus)

	return d
}

// The exported kubeconfig is deleted while objects hold it: it goes after a moment, the export writes it again
// with one new kubeconfig, and the objects go on and hold the new one.
func TestExportedKubeconfigDeletedAlone(t *testing.T) {
	slow(t)
	t.Parallel()

	d := newChain(t)

	before := get[corev1.Secret](d.space, "secret", "demo-kubeconfig")
	if len(before.Finalizers) != 1 || before.Finalizers[0] != v1alpha1.KubeconfigInUseFinalizer {
		t.Fatalf("the Secret is not held: %v", before.Finalizers)
	}

	d.run("delete", "secret", "demo-kubeconfig", "--timeout=90s")
	d.wait("the new Secret", func() error {
		if _, err := d.try("get", "secret", "demo-kubeconfig"); err != nil {
			return err
		}

		after := get[corev1.Secret](d.space, "secret", "demo-kubeconfig")
		if after.UID == before.UID || len(after.Finalizers) != 1 {
			return fmt.Errorf("UID %s, finalizers %v", after.UID, after.Finalizers)
		}

		return nil
	})
	d.ready("oke", "robot")
	d.ready("oss", "registry")

	if asked := d.omni.Requests()[omnisim.Request{Method: "Kubeconfig"}]; asked != 2 {
		t.Errorf("Omni was asked %d times, want 2", asked)
	}

	d.apply(sourceManifest("two"))
	d.waitTarget("pull", map[string]string{"username": "robot", "password": "two"})

	d.apply(d.release("    values: {data: {greeting: servus}}"))
	d.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "servus"})

	// The export goes first, then what uses it: the kubeconfig waits for that.
	d.run("delete", "oke", "robot", "--timeout=60s")
	d.deleteBoth()
	d.waitCleaned()
	d.waitGone("secret", "demo-kubeconfig")
}

// The namespace goes at once, with everything in it, and the cluster stays in Omni: it is cleaned up first.
func TestNamespaceOfTheChainDeleted(t *testing.T) {
	t.Parallel()

	d := newChain(t)
	d.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)
	d.run("delete", "namespace", d.name, namespaceTimeout)
	d.waitCleaned()
}

// The source goes, and a key of it: the copy stays as it is, the object says what is missing, and follows again when
// the source is back.
func TestSecretSyncSourceDeleted(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")
	before := d.target(d.apps, "pull")

	missing := func(words string) {
		message := d.waitCondition("oss", "registry", v1alpha1.ConditionSourceFound, metav1.ConditionFalse, v1alpha1.ReasonSourceNotFound)
		if !strings.Contains(message, words) || !strings.Contains(message, "stays") {
			t.Errorf("message: %s", message)
		}

		d.waitCondition("oss", "registry", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSourceNotFound)

		if after := d.target(d.apps, "pull"); after == nil || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the copy did not stay as it was: %v", after != nil)
		}
	}

	d.run("delete", "secret", "registry", "--timeout=60s")
	missing(`Secret "registry" (spec.sourceSecretRef) does not exist`)

	d.apply(sourceManifest("two"))
	d.ready("oss", "registry")
	d.waitTarget("pull", map[string]string{"username": "robot", "password": "two"})

	// A key that the spec selects.
	before = d.target(d.apps, "pull")
	d.apply(d.syncManifest("pull", deletes, "  keys: [{from: token, to: token}]"))
	missing(`"token"`)

	// What was written is still known, and goes with the object.
	d.run("delete", "secret", "registry", "--timeout=60s")
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitTarget("pull", nil)
}

// What somebody changes in the workload cluster is found and undone, here at once because that is asked for.
func TestSecretSyncDrift(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")

	changed := d.target(d.apps, "pull")
	changed.Data["password"] = []byte("changed")

	if _, err := d.hub.Client().CoreV1().Secrets(d.apps).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	d.run("annotate", "oss", "registry", v1alpha1.AnnotationReconcileRequestedAt+"=drift")
	d.waitTarget("pull", map[string]string{"username": "robot", "password": "one"})
	d.ready("oss", "registry")
}

// A target that somebody else made was never ours: a deletion does not speak of it.
func TestSecretSyncLeavesNothingBehindThatIsForeign(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)

	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.apps, Name: "theirs"}, StringData: map[string]string{"a": "b"}}
	if _, err := d.hub.Client().CoreV1().Secrets(d.apps).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	d.apply(d.syncManifest("theirs", deletes))
	d.waitCondition("oss", "registry", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonForeignTarget)
	d.waitKstatus("oss", "registry", status.FailedStatus)
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitTarget("theirs", map[string]string{"a": "b"})

	if out := d.run("get", "events", "--field-selector", "reason=LeftBehind", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("an event speaks of a Secret that was never ours: %s", out)
	}
}

// The workload cluster is the management cluster: neither the source nor the kubeconfig is ever a target.
func TestSecretSyncIntoItsOwnCluster(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)

	content, err := os.ReadFile(stack.KubeconfigPath)
	if err != nil {
		t.Fatal(err)
	}

	d.apply(rawKubeconfigManifest("own", string(content)))

	for _, target := range []string{"registry", "own"} {
		manifest := strings.NewReplacer("name: demo-kubeconfig", "name: own", "namespace: "+d.apps, "namespace: "+d.name, "  name: registry\nspec", "  name: to-"+target+"\nspec").
			Replace(d.syncManifest(target, deletes, "  adopt: true"))
		d.apply(manifest)
		d.waitCondition("oss", "to-"+target, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonForeignTarget)
		d.run("delete", "oss", "to-"+target, "--timeout=60s")
	}

	d.wait("the source and the kubeconfig to be as they were", func() error {
		if string(get[corev1.Secret](d.space, "secret", "registry").Data["password"]) != "one" {
			return errors.New("the source was changed")
		}

		if len(get[corev1.Secret](d.space, "secret", "own").Data["kubeconfig"]) == 0 {
			return errors.New("the kubeconfig was changed")
		}

		return nil
	})
}
