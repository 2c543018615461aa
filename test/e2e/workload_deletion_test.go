package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// newInhabited is a releasing with a copied Secret, pull, and a release, app, in its workload cluster.
func newInhabited(t *testing.T) *releasing {
	t.Helper()

	r := newReleasing(t)
	r.apply(r.syncManifest("pull", deletes), r.release())
	r.ready("oss", "registry")
	r.ready("ohr", "app")

	return r
}

// deleteBoth deletes both objects, which must not take long.
func (r *releasing) deleteBoth() {
	r.t.Helper()
	r.run("delete", "oss/registry", "ohr/app", "--timeout=60s")
}

// waitCleaned waits until nothing of both is in the workload cluster.
func (r *releasing) waitCleaned() {
	r.t.Helper()
	r.waitTarget("pull", nil)
	r.waitData("app", nil)
	r.waitRecords("app")
}

// waitLeft waits until events name what both left behind, and say why.
func (r *releasing) waitLeft(why string) {
	r.t.Helper()
	r.waitEvent("LeftBehind", "Secret "+r.apps+"/pull", why)
	r.waitEvent("LeftBehind", "Helm release "+r.apps+"/app", `OmniCluster "demo"`, why)
	r.wantRecords("app", "1 deployed")
}

// A whole namespace goes at once: the kubeconfig waits until the workload cluster is cleaned up.
func TestWorkloadNamespaceDeleted(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)

	// The cluster itself stays in Omni: it is what was made in it that has to be cleaned up.
	r.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)
	r.run("delete", "namespace", r.name, namespaceTimeout)
	r.waitCleaned()
}

// The kubeconfig's Secret alone is deleted: it goes, and the objects let go later without it.
func TestWorkloadKubeconfigDeleted(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)
	r.run("delete", "secret", "demo-kubeconfig", "--timeout=90s")
	r.waitCondition("oss", "registry", v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigNotFound)
	r.waitCondition("ohr", "app", v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigNotFound)
	r.deleteBoth()
	r.waitLeft("demo-kubeconfig")
}

// The cluster is destroyed with its OmniCluster: nothing is cleaned up in it, and nothing hangs.
func TestWorkloadClusterDestroyed(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)
	r.omni.Pause() // the teardown has begun, and takes its time
	r.run("delete", "ocl", "demo", "--wait=false")
	r.waitShows("the teardown", "ocl", "demo", "{.status.omni.phase}", v1alpha1.ClusterPhaseDestroying)
	r.deleteBoth()
	r.waitLeft("destroyed with its OmniCluster")
	r.omni.Resume()
	r.deleted("demo")
}

// The deletion of the OmniCluster is blocked, and the cluster lives on: it is cleaned up as ever.
func TestWorkloadClusterNotDestroyed(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)
	r.lockCluster("demo")
	r.run("delete", "ocl", "demo", "--wait=false")
	r.waitCondition("ocl", "demo", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonRemoteLocked)
	r.deleteBoth()
	r.waitCleaned()

	if out := r.run("get", "events", "--field-selector", "reason=LeftBehind", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("events speak of what was cleaned up: %s", out)
	}

	r.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)
	r.waitGone("ocl", "demo")
}

// A cluster that does not answer holds deletions up, says so, and the policy lets go.
func TestWorkloadClusterDead(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })
	r.apply(strings.ReplaceAll(kubeconfigManifest(t, "demo-kubeconfig", r.hub), r.hub.URL(), "https://"+listener.Addr().String()))
	r.run("delete", "oss/registry", "ohr/app", "--wait=false")

	for _, object := range []string{"oss/registry", "ohr/app"} {
		resource, name, _ := strings.Cut(object, "/")
		if message := r.waitCondition(resource, name, v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, ""); !strings.Contains(message, "Orphan") {
			t.Errorf("no remedy: %s", message)
		}

		r.run("patch", object, "--type=merge", "-p", `{"spec":{"deletionPolicy":"Orphan"}}`)
		r.waitGone(resource, name)
	}

	r.waitLeft("Orphan")
}

// The namespace goes at once, with the cluster, its export, a copy and a release: whoever is first, nothing hangs, Omni
// has nothing left, and what stays in the workload cluster, which outlives its teardown here, is named.
func TestWorkloadNamespaceDeletedWithItsCluster(t *testing.T) {
	slow(t)
	t.Parallel()

	r := newChain(t)
	r.run("delete", "namespace", r.name, namespaceTimeout)
	r.waitRemoteGone("demo")

	// No event can be written in a namespace that goes, so the log has them, one after another.
	for left, what := range map[string]bool{
		fmt.Sprintf("Secret %s/pull stays", r.apps):      r.target(r.apps, "pull") != nil,
		fmt.Sprintf("Helm release %s/app stays", r.apps): len(r.records("app")) > 0,
	} {
		if !what {
			continue
		}

		await.Until(t, "the log says "+left, func() bool {
			log, err := os.ReadFile(stack.Controller.LogPath())

			return err == nil && strings.Contains(string(log), left)
		})
	}
}
