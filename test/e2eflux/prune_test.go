package e2eflux

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// view is what Omni itself says of a cluster.
func (d *desk) view(name string) omnisim.ClusterView {
	d.t.Helper()

	view, err := d.omni.View(name)
	if err != nil {
		d.t.Fatal(err)
	}

	return view
}

// Everything is taken out of the repository at once. Flux deletes it in one go, and what is left behind
// is what the policies say. It deletes the connection first, which is refused while clusters use it, and tries again by itself.
func TestPruneFollowsThePolicies(t *testing.T) {
	d := newDesk(t)
	hub := d.attach("kept")
	d.applyTo(hub, deployers)
	d.alsoAttach("gone", hub)

	d.files[fleetFile] = documents(anchor, d.connection(),
		cluster("kept", "  deletePolicy: {orphan: true}"), set("OmniControlPlane", "kept", "kept", 1), set("OmniWorkers", "kept-workers", "kept", 1),
		cluster("gone"), set("OmniControlPlane", "gone", "gone", 1), set("OmniWorkers", "gone-workers", "gone", 1),
		export("kept-access", "kept", "Delete"), export("kept-for-ever", "kept", "Orphan"), export("gone-access", "gone", "Delete"),
		secretSync("removed", "kept", "kept-access", "apps", "Delete"), secretSync("left", "kept", "kept-access", "apps", "Orphan"),
		secretSync("lost", "gone", "gone-access", "apps", "Delete"),
		d.helmRelease("uninstalled", "kept", "kept-access", "Uninstall"), d.helmRelease("installed", "kept", "kept-access", "Orphan"))
	revision := d.push()
	d.apply(registrySecret, d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", revision)

	d.files[fleetFile] = anchor
	d.waitApplied("fleet", d.push())
	d.wait("all of our objects to be gone", func() error {
		if out := d.run("get", "omni", "-o", "name"); out != "" && !strings.HasPrefix(out, "No resources") {
			return fmt.Errorf("left: %s", out)
		}

		return nil
	})

	kept, gone := d.view("kept"), d.view("gone")
	if !kept.Exists || kept.Deleting || kept.Machines["kept-control-planes"] != 1 || kept.Machines["kept-kept-workers"] != 1 || kept.Annotations[v1alpha1.MarkOwnerUID] != "" {
		t.Errorf("of the orphaned cluster Omni has %+v", kept)
	}

	if gone.Exists {
		t.Errorf("Omni still has %+v", gone)
	}

	for secret, want := range map[string]bool{"kept-access": false, "kept-for-ever": true, "gone-access": false, "registry": true} {
		if _, err := d.try("", "get", "secret", secret); (err == nil) != want {
			t.Errorf("Secret %s is there: %v, want %v", secret, err == nil, want)
		}
	}

	for secret, want := range map[string]bool{
		"removed": false, "left": true, "sh.helm.release.v1.uninstalled.v1": false, "sh.helm.release.v1.installed.v1": true,
	} {
		_, err := hub.Client().CoreV1().Secrets("apps").Get(t.Context(), secret, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}

		if (err == nil) != want {
			t.Errorf("Secret %s is in the workload cluster: %v, want %v", secret, err == nil, want)
		}
	}
}

// The connection, the Secret of its key and their cluster leave the repository in one commit. Flux deletes the connection first and is refused,
// then the cluster; the next attempt deletes the connection, which stays with its key until the cluster is gone. Nobody has to do anything.
func TestPruneOfConnectionKeyAndClusterEnds(t *testing.T) {
	d := newDesk(t)
	key := string(d.secret(keySecret).Data["serviceAccountKey"])
	d.files[fleetFile] = documents(anchor, d.connection(), cluster("demo"), set("OmniControlPlane", "demo", "demo", 1), set("OmniWorkers", "demo-workers", "demo", 2),
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: flux-system}\nstringData: {serviceAccountKey: %q}\n", keySecret, key))
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", d.push())

	seen := d.record("fleet")
	gone := d.deletions(map[string]schema.GroupVersionResource{
		"demo": v1alpha1.SchemeGroupVersion.WithResource("omniclusters"), "omni": v1alpha1.SchemeGroupVersion.WithResource("omniconnections"),
		keySecret: {Version: "v1", Resource: "secrets"},
	})

	d.files[fleetFile] = anchor
	d.waitApplied("fleet", d.push())

	for range 3 {
		select {
		case name := <-gone:
			t.Logf("%s is gone", name)

			if view := d.view("demo"); view.Exists {
				t.Errorf("%s went before the cluster in Omni", name)
			}
		case <-time.After(eventually):
			t.Fatal("something stays")
		}
	}

	messages := seen.failures()
	if !slices.ContainsFunc(messages, func(message string) bool {
		return strings.HasPrefix(message, "PruneFailed: ") && strings.Contains(message, "OmniConnection/flux-system/omni") && strings.Contains(message, `"demo"`)
	}) {
		t.Errorf("the Kustomization said %q", messages)
	}

	for _, message := range messages {
		t.Log(message)
	}
}

// deletions sends the names of these objects as they cease to exist.
func (d *desk) deletions(objects map[string]schema.GroupVersionResource) <-chan string {
	d.t.Helper()

	client, err := dynamic.NewForConfig(stack.RESTConfig())
	if err != nil {
		d.t.Fatal(err)
	}

	gone := make(chan string, len(objects))

	for name, resource := range objects {
		watcher, err := client.Resource(resource).Namespace(env.FluxNamespace).Watch(d.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			d.t.Fatal(err)
		}

		d.t.Cleanup(watcher.Stop)

		go func() {
			for event := range watcher.ResultChan() {
				if event.Type == watch.Deleted {
					gone <- name
				}
			}
		}()
	}

	return gone
}

// alsoAttach lets a second cluster of Omni lead to the same Kubernetes.
func (d *desk) alsoAttach(cluster string, hub *env.Hub) {
	d.t.Helper()

	cert, key := hub.FrontProxyClient()
	if err := d.omni.AttachWorkload(cluster, omnisim.Workload{URL: hub.URL(), CA: hub.CA(), ProxyCert: cert, ProxyKey: key}); err != nil {
		d.t.Fatal(err)
	}
}

// A cluster that asks for confirmation outlives the mistake of taking everything out of the repository:
// Flux deletes its children and is refused the cluster and its connection, and Omni keeps every machine.
func TestPruneOfAGuardedClusterDestroysNothing(t *testing.T) {
	d := newDesk(t)
	t.Cleanup(d.confirm)

	connection := d.connection()
	whole := documents(anchor, connection, cluster("guarded", "  deletePolicy: {requireConfirmation: true}"),
		set("OmniControlPlane", "guarded", "guarded", 1), set("OmniWorkers", "guarded-workers", "guarded", 2))
	d.files[fleetFile] = whole
	revision := d.push()
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", revision)

	writes := len(d.omni.Writes())
	d.files[fleetFile] = anchor
	d.push()
	d.wait("Flux to say why it could not prune", func() error {
		state := get[object](d, "kustomization", "fleet")

		ready := meta.FindStatusCondition(state.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, v1alpha1.AnnotationConfirmDeletion) {
			return fmt.Errorf("%+v", ready)
		}

		return nil
	})
	time.Sleep(2 * settleTime)

	if connection := get[v1alpha1.OmniConnection](d, "oconn", "omni"); connection.DeletionTimestamp != nil {
		t.Error("the connection of the guarded cluster is being deleted")
	}

	if view := d.view("guarded"); view.Deleting || view.Machines["guarded-control-planes"] != 1 || view.Machines["guarded-guarded-workers"] != 2 {
		t.Errorf("Omni has %+v", view)
	}

	// Put back, it is as before; nothing was destroyed and made again.
	d.files[fleetFile] = whole
	d.waitApplied("fleet", d.push())

	if got := d.omni.Writes(); len(got) != writes {
		t.Errorf("Omni was written: %+v", got[writes:])
	}

	d.files[fleetFile] = anchor
	d.confirm()
	d.waitApplied("fleet", d.push())
	d.waitGone("ocl", "guarded")

	if view := d.view("guarded"); view.Exists {
		t.Errorf("after the confirmation Omni has %+v", view)
	}
}

// confirm allows the guarded cluster to be deleted, if it is there.
func (d *desk) confirm() {
	_, _, err := stack.Kubectl(context.WithoutCancel(d.t.Context()), "-n", env.FluxNamespace, "annotate", "--overwrite", "ocl", "guarded",
		v1alpha1.AnnotationConfirmDeletion+"=guarded")
	if err != nil && !strings.Contains(err.Error(), "NotFound") {
		d.t.Error(err)
	}
}
