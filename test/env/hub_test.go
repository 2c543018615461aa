package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"omni.texashpc.com/omni-cluster-operator/test/env/kubectl"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// TestHub checks that the hub is a real cluster: kubectl, garbage collection, namespace
// deletion, RBAC, what our programs may do in it, and an orderly end.
func TestHub(t *testing.T) {
	ctx := t.Context()
	hub := startHub(t, Options{})

	t.Run("versions", func(t *testing.T) {
		stdout, _, err := hub.Kubectl(ctx, "version")
		if err != nil {
			t.Fatal(err)
		}

		for _, want := range []string{"Client Version: v1.37.2", "Server Version: v1.37.2"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("kubectl version says %q, want %q in it", stdout, want)
			}
		}
	})

	if err := hub.CreateNamespace(ctx, "shop"); err != nil {
		t.Fatal(err)
	}

	t.Run("kubectl applies and reads", func(t *testing.T) { testKubectl(t, hub) })
	t.Run("applies without a process", func(t *testing.T) { testApplier(t, hub) })
	t.Run("garbage collection", func(t *testing.T) { testGarbageCollection(t, hub) })
	t.Run("other users", func(t *testing.T) { testOtherUsers(t, hub) })
	t.Run("namespace deletion", func(t *testing.T) { testNamespaceDeletion(t, hub) })
	// Last: namespaces do not go while the server of an API is away.
	t.Run("deployment", func(t *testing.T) { testDeployment(t, hub) })
	t.Run("stop", func(t *testing.T) { testStop(t, hub) })
}

func startHub(t *testing.T, options Options) *Hub {
	t.Helper()

	options.Dir = t.TempDir()
	options.Progress = t.Output()

	hub, err := StartHub(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	return hub
}

// testApplier: what kubectl made is changed as kubectl would, and kubectl has nothing to change after that.
func testApplier(t *testing.T, hub *Hub) {
	ctx := t.Context()

	applier, err := kubectl.NewApplier(hub.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	apply := func(manifest string) string {
		stdout, _, err := hub.KubectlInput(ctx, strings.NewReader(manifest), "-n", "shop", "apply", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}

		return stdout
	}

	apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stock}\ndata: {apple: \"3\", pear: \"4\"}\n")

	client := hub.Client().CoreV1().ConfigMaps("shop")
	if _, err := client.Patch(ctx, "stock", types.MergePatchType, []byte(`{"data":{"others":"5"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	const second = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stock}\ndata: {apple: \"30\"}\n---\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: late}\n"
	if err := applier.Apply(ctx, "shop", second); err != nil {
		t.Fatal(err)
	}

	stock, err := client.Get(ctx, "stock", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]string{"apple": "30", "others": "5"}, stock.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}

	if got := apply(second); got != "configmap/stock unchanged\nconfigmap/late unchanged\n" {
		t.Errorf("kubectl after that: %s", got)
	}

	// One that is refused keeps no other from being applied.
	err = applier.Apply(ctx, "shop", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndatum: {}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n")
	if err == nil || !strings.Contains(err.Error(), `ConfigMap "bad"`) || !strings.Contains(err.Error(), `unknown field "datum"`) {
		t.Errorf("a field that does not exist: %v", err)
	}

	if _, err := client.Get(ctx, "good", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	err = applier.Apply(ctx, "other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, namespace: shop}\n")
	if err == nil || !strings.Contains(err.Error(), `namespace "shop", not of "other"`) {
		t.Errorf("another namespace: %v", err)
	}

	testNewKind(t, applier, apply)
}

// testNewKind: a kind that was not there when the kinds were read, and an integer that is no floating-point number.
func testNewKind(t *testing.T, applier *kubectl.Applier, apply func(manifest string) string) {
	apply(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: counts.example.com}
spec:
  group: example.com
  names: {kind: Count, plural: counts}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)

	const count = "apiVersion: example.com/v1\nkind: Count\nmetadata: {name: large}\nof: 9007199254740993\n"
	if err := Eventually(t.Context(), time.Minute, "the new kind", func(ctx context.Context) error { return applier.Apply(ctx, "shop", count) }); err != nil {
		t.Fatal(err)
	}

	if got := apply(count); got != "count.example.com/large unchanged\n" {
		t.Errorf("kubectl after that: %s", got)
	}
}

func testKubectl(t *testing.T, hub *Hub) {
	ctx := t.Context()
	manifest := strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prices, namespace: shop}\ndata: {apple: \"3\"}\n")

	stdout, stderr, err := hub.KubectlInput(ctx, manifest, "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff("configmap/prices created\n", stdout); diff != "" {
		t.Errorf("apply (-want +got):\n%s", diff)
	}

	if stderr != "" {
		t.Errorf("apply printed a warning: %q", stderr)
	}

	stdout, _, err = hub.Kubectl(ctx, "get", "configmap", "prices", "-n", "shop", "-o", "jsonpath={.data.apple}")
	if err != nil || stdout != "3" {
		t.Errorf("get = %q, %v; want 3", stdout, err)
	}

	_, _, err = hub.Kubectl(ctx, "get", "configmap", "missing", "-n", "shop")
	if err == nil || !strings.Contains(err.Error(), `configmaps "missing" not found`) {
		t.Errorf("get of a missing object: error %v, want it to carry what kubectl said", err)
	}
}

func testGarbageCollection(t *testing.T, hub *Hub) {
	ctx := t.Context()
	configMaps := hub.Client().CoreV1().ConfigMaps("shop")

	owner, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	if _, err := configMaps.Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := configMaps.Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	mustEventually(t, "the owned object to go", func(ctx context.Context) error {
		_, err := configMaps.Get(ctx, "owned", metav1.GetOptions{})

		return wantNotFound(err)
	})
}

func testOtherUsers(t *testing.T, hub *Hub) {
	ctx := t.Context()

	config, err := hub.RESTConfigFor("alice", "shoppers")
	if err != nil {
		t.Fatal(err)
	}

	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := alice.CoreV1().Secrets("shop").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list of secrets by alice: %v, want forbidden", err)
	}

	path, err := hub.KubeconfigFor("alice", "shoppers")
	if err != nil {
		t.Fatal(err)
	}

	stdout, _, err := hub.Kubectl(ctx, "auth", "whoami", "--kubeconfig", path, "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if err != nil || stdout != `alice ["shoppers","system:authenticated"]` {
		t.Errorf("whoami = %q, %v", stdout, err)
	}
}

func testNamespaceDeletion(t *testing.T, hub *Hub) {
	ctx := t.Context()
	namespaces := hub.Client().CoreV1().Namespaces()

	if err := namespaces.Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	mustEventually(t, "the namespace to go", func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, "shop", metav1.GetOptions{})

		return wantNotFound(err)
	})
}

func testStop(t *testing.T, hub *Hub) {
	pids := hub.ProcessIDs()
	if len(pids) != 3 {
		t.Errorf("the hub has processes %v, want three", pids)
	}

	start := time.Now()
	if err := hub.Stop(); err != nil {
		t.Error(err)
	}

	t.Logf("stopped in %s", time.Since(start))

	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s still runs after Stop (%v)", name, err)
		}
	}

	if _, err := os.Stat(hub.LogPath("kube-apiserver")); err != nil {
		t.Errorf("Stop removed a directory that the caller owns: %v", err)
	}

	if err := hub.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

// TestStartHubFails checks that a control plane that cannot start says why and leaves
// nothing behind.
func TestStartHubFails(t *testing.T) {
	dir := t.TempDir()

	start := time.Now()
	hub, err := StartHub(t.Context(), Options{Dir: dir, Progress: t.Output(), KubeAPIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal(errors.Join(errors.New("the hub started in spite of an unknown flag"), hub.Stop()))
	}

	if elapsed := time.Since(start); elapsed > time.Minute {
		t.Errorf("the failure took %s to be noticed", elapsed)
	}

	for _, want := range []string{"kube-apiserver ended by itself", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func mustEventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()

	if err := Eventually(t.Context(), time.Minute, what, check); err != nil {
		t.Fatal(err)
	}
}

func wantNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}

	return fmt.Errorf("get answers %v, want not found", err)
}
