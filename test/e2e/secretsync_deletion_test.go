package e2e

import (
	"net"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A whole namespace goes at once: the kubeconfig waits until the Secret in the workload cluster is removed.
func TestSecretSyncNamespaceDeleted(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")

	// The cluster itself stays in Omni: it is the copy that has to be cleaned up.
	d.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)
	d.run("delete", "namespace", d.name, "--timeout=90s")
	d.waitTarget("pull", nil)
}

// The kubeconfig's Secret alone is deleted: it goes, and the object lets go later without it.
func TestSecretSyncKubeconfigDeleted(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")

	d.run("delete", "secret", "demo-kubeconfig", "--timeout=90s")
	d.waitCondition("oss", "registry", v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigNotFound)
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitEvent("LeftBehind", d.apps+"/pull", "demo-kubeconfig")
}

// The cluster is destroyed with its OmniCluster: nothing is cleaned up in it, and nothing hangs.
func TestSecretSyncClusterDestroyed(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")
	d.run("delete", "ocl", "demo", "--wait=false")
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitEvent("LeftBehind", d.apps+"/pull", "destroyed with its OmniCluster")
}

// A cluster that does not answer holds a deletion up, says so, and the policy lets go.
func TestSecretSyncClusterDead(t *testing.T) {
	t.Parallel()

	d := newDelivery(t)
	d.apply(d.syncManifest("pull", deletes))
	d.ready("oss", "registry")

	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })
	d.apply(strings.ReplaceAll(kubeconfigManifest(t, "demo-kubeconfig", d.hub), d.hub.URL(), "https://"+listener.Addr().String()))
	d.run("delete", "oss", "registry", "--wait=false")

	if message := d.waitCondition("oss", "registry", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, ""); !strings.Contains(message, "Orphan") {
		t.Errorf("no remedy: %s", message)
	}

	d.run("patch", "oss", "registry", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Orphan"}}`)
	d.waitGone("oss", "registry")
	d.waitEvent("LeftBehind", d.apps+"/pull", "Orphan")
}
