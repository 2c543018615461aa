package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// delivery is a fleet with one cluster named demo, a workload cluster behind it whose administrator's
// kubeconfig is in Secret demo-kubeconfig, and a Secret to copy.
type delivery struct {
	*fleet

	hub  *env.Hub
	apps string // a namespace of the test's own in the workload cluster
}

func newDelivery(t *testing.T) *delivery {
	t.Helper()

	return deliveryIn(newFleet(t))
}

// deliveryIn needs a fleet without clusters.
func deliveryIn(f *fleet) *delivery {
	t := f.t
	t.Helper()

	d := &delivery{fleet: f, hub: workloads.Shared(t)}
	apps := metav1.ObjectMeta{Name: f.name}

	if f.space.hub != nil { // the next stack has a namespace of that name again, and the workload cluster is the same
		apps = metav1.ObjectMeta{GenerateName: f.name + "-"}
	}

	created, err := d.hub.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: apps}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	d.apps = created.Name

	d.cluster("demo")
	d.apply(kubeconfigManifest(t, "demo-kubeconfig", d.hub))
	d.apply(sourceManifest("one"))

	return d
}

// kubeconfigManifest is a Secret with a workload cluster's administrator.
func kubeconfigManifest(t *testing.T, name string, hub *env.Hub) string {
	t.Helper()

	content, err := os.ReadFile(hub.KubeconfigPath)
	if err != nil {
		t.Fatal(err)
	}

	return rawKubeconfigManifest(name, string(content))
}

func rawKubeconfigManifest(name, content string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\nstringData:\n  kubeconfig: |\n    %s", name,
		strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n    "))
}

func sourceManifest(password string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: registry
  labels: {private: label}
  annotations: {private: annotation}
type: kubernetes.io/basic-auth
stringData:
  username: robot
  password: %s`, password)
}

// syncManifest has extra lines of spec, indented by two.
func (d *delivery) syncManifest(target string, extra ...string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata:
  name: registry
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  sourceSecretRef: {name: registry}
  targetSecretRef: {name: %s, namespace: %s}
%s`, target, d.apps, strings.Join(extra, "\n"))
}

const deletes = "  deletionPolicy: Delete"

// target reads a Secret of the workload cluster; nil if there is none.
func (d *delivery) target(namespace, name string) *corev1.Secret {
	d.t.Helper()

	secret, err := d.hub.Client().CoreV1().Secrets(namespace).Get(d.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		d.t.Fatal(err)
	}

	return secret
}

// waitTarget waits until the data of a Secret in the workload cluster is this; nil for no Secret.
func (d *delivery) waitTarget(name string, want map[string]string) {
	d.t.Helper()
	d.wait("the Secret in the workload cluster", func() error {
		secret := d.target(d.apps, name)
		if (secret == nil) != (want == nil) {
			return fmt.Errorf("Secret is there: %v", secret != nil)
		}

		if secret == nil {
			return nil
		}

		got := map[string]string{}
		for key, value := range secret.Data {
			got[key] = string(value)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}

		return nil
	})
}

func (d *delivery) ready(resource, name string) {
	d.t.Helper()
	d.waitCondition(resource, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// A Secret is copied, follows its source, moves, and goes with its object. Nothing but data and type is copied.
func TestSecretSync(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes, "  labels: {team: a}"))
	d.ready("oss", "registry")
	d.waitTarget("pull", map[string]string{"username": "robot", "password": "one"})

	secret := d.target(d.apps, "pull")
	if secret.Type != corev1.SecretTypeBasicAuth || secret.Labels["private"] != "" || secret.Annotations["private"] != "" || secret.Labels["team"] != "a" {
		t.Errorf("type %s, labels %v, annotations %v", secret.Type, secret.Labels, secret.Annotations)
	}

	// A second run writes nothing, here or there.
	before := get[anyKind](d.space, "oss", "registry")
	d.run("annotate", "oss", "registry", v1alpha1.AnnotationReconcileRequestedAt+"=again")
	d.wait("the request to be handled", func() error {
		if got := get[v1alpha1.OmniSecretSync](d.space, "oss", "registry"); got.Status.LastHandledReconcileAt != "again" {
			return errors.New("not handled")
		}

		return nil
	})

	if after := d.target(d.apps, "pull"); after.ResourceVersion != secret.ResourceVersion {
		t.Error("the second run wrote the target")
	}

	if after := get[anyKind](d.space, "oss", "registry"); cmp.Diff(before.Status.Conditions, after.Status.Conditions) != "" {
		t.Error("the second run changed the conditions")
	}

	// The source changes; somebody changes the target.
	d.apply(sourceManifest("two"))
	d.waitTarget("pull", map[string]string{"username": "robot", "password": "two"})

	// A selection of keys, another type, another place.
	d.apply(d.syncManifest("moved", deletes, "  type: Opaque", "  keys: [{from: password, to: token}]"))
	d.waitTarget("moved", map[string]string{"token": "two"})
	d.waitTarget("pull", nil)
	d.ready("oss", "registry")

	status := get[v1alpha1.OmniSecretSync](d.space, "oss", "registry").Status
	if status.Target == nil || status.Target.Name != "moved" || status.Target.Type != "Opaque" || status.ClusterID == "" {
		t.Errorf("status: %+v", status)
	}

	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitTarget("moved", nil)
}

// What somebody else made is not touched, unless that is asked for; an orphan stays.
func TestSecretSyncForeignTarget(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)

	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.apps, Name: "theirs"}, StringData: map[string]string{"a": "b"}}
	if _, err := d.hub.Client().CoreV1().Secrets(d.apps).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	d.apply(d.syncManifest("theirs", "  deletionPolicy: Orphan"))

	if message := d.waitCondition("oss", "registry", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonForeignTarget); !strings.Contains(message, "spec.adopt") {
		t.Errorf("no remedy: %s", message)
	}

	d.waitTarget("theirs", map[string]string{"a": "b"})
	d.apply(d.syncManifest("theirs", "  deletionPolicy: Orphan", "  adopt: true"))
	d.ready("oss", "registry")
	d.waitTarget("theirs", map[string]string{"username": "robot", "password": "one"})

	// A type that differs is replaced, since Kubernetes does not let it change.
	if secret := d.target(d.apps, "theirs"); secret.Type != corev1.SecretTypeBasicAuth {
		t.Errorf("type %s", secret.Type)
	}

	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitTarget("theirs", map[string]string{"username": "robot", "password": "one"})
	d.waitEvent("LeftBehind", d.apps+"/theirs", "Orphan")
}

// An object is renamed in Git: the new one is there before the old one is pruned. It copies again what the old one takes
// with it, and does not wait for its interval of five minutes.
func TestSecretSyncRenamed(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("shared", deletes))
	d.ready("oss", "registry")
	d.apply(strings.Replace(d.syncManifest("shared", deletes), "name: registry", "name: renamed", 1))
	d.waitCondition("oss", "renamed", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonForeignTarget)
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.ready("oss", "renamed")
	d.waitTarget("shared", map[string]string{"username": "robot", "password": "one"})
}

// A namespace that is missing is made only if that is asked for.
func TestSecretSyncNamespace(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	manifest := func(extra ...string) string {
		return strings.Replace(d.syncManifest("pull", append(extra, deletes)...), "namespace: "+d.apps, "namespace: "+d.apps+"-new", 1)
	}

	d.apply(manifest())

	if message := d.waitCondition("oss", "registry", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNamespaceNotFound); !strings.Contains(message, "createNamespace") {
		t.Errorf("no remedy: %s", message)
	}

	d.apply(manifest("  createNamespace: true"))
	d.ready("oss", "registry")

	if d.target(d.apps+"-new", "pull") == nil {
		t.Error("no Secret")
	}
}

// A program named in a kubeconfig is never run, and a kubeconfig that leads elsewhere is not followed.
func TestSecretSyncKubeconfigs(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	canary := filepath.Join(t.TempDir(), "ran")

	d.apply(rawKubeconfigManifest("demo-kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "%s"}}]
users: [{name: it, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["%s"], interactiveMode: Never}}}]`, d.hub.URL(), canary)))
	d.apply(d.syncManifest("pull", deletes))

	if message := d.waitCondition("oss", "registry", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonUnsafeKubeconfig); !strings.Contains(message, "user.exec") {
		t.Errorf("the field is not named: %s", message)
	}

	if _, err := os.Stat(canary); !os.IsNotExist(err) {
		t.Errorf("the program ran: %v", err)
	}

	d.apply(kubeconfigManifest(t, "demo-kubeconfig", d.hub))
	d.ready("oss", "registry")

	former := get[v1alpha1.OmniSecretSync](d.space, "oss", "registry").Status.ClusterID
	other := workloads.Borrow(t)
	d.apply(kubeconfigManifest(t, "demo-kubeconfig", other))

	message := d.waitCondition("oss", "registry", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonWrongCluster)
	if _, err := other.Client().CoreV1().Secrets(d.apps).Get(t.Context(), "pull", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written to the wrong cluster: %v", err)
	}

	_, accept, _ := strings.Cut(message, "accept-cluster: ")
	d.run("annotate", "oss", "registry", v1alpha1.AnnotationAcceptCluster+"="+accept)
	d.apply(d.syncManifest("pull", deletes, "  createNamespace: true"))
	d.ready("oss", "registry")
	d.waitEvent("LeftBehind", d.apps+"/pull stays in cluster "+former, accept)
}
