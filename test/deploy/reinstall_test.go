package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// inUse is the cluster that lives.
const inUse = "cluster-01"

// checkReinstall does what docs/how-to/install.md says of uninstalling while a cluster lives. The release is installed
// and nothing of it runs yet; at the end nothing is left.
func checkReinstall(t *testing.T, hub *env.Hub, helm *helmClient) {
	binaries, err := env.BuildBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}

	first := startRelease(t, hub, binaries, nil)
	live := startLive(t, first)
	helm.test(t, hub, binaries)

	// The programs run on while Helm takes everything away, as Pods do.
	helm.uninstall(t)
	live.kindsAreGone()
	first.end(t)
	first.removeLogs(t)
	live.untouched("after uninstalling")
	live.secretsStay()

	// The controller had no right any more to give the lease back; nobody waits for it here.
	kubectl(t, hub, "", "delete", "leases", "--all", "-n", namespace)

	helm.install(t, "")
	second := startRelease(t, hub, binaries, first.apiserver)
	live.running = second
	live.ready()
	live.untouched("after installing again")
	live.secretsStay()

	if got := live.identities(); got != live.uids {
		t.Errorf("the objects came back as %s, not %s", got, live.uids)
	}

	helm.uninstall(t)
	live.kindsAreGone()
	second.end(t)
	live.removeForGood()
}

// startRelease starts what Helm installed, with the data of an earlier API server if there is one.
func startRelease(t *testing.T, hub *env.Hub, binaries env.Binaries, before *pod) *running {
	t.Helper()

	r := prepare(t, hub, "")

	if before != nil {
		if err := errors.Join(os.Remove(r.apiserver.Volume("data")), os.Rename(before.Volume("data"), r.apiserver.Volume("data"))); err != nil {
			t.Fatal(err)
		}
	}

	r.start(t, binaries, nil)

	return r
}

// live is a cluster in a simulated Omni that an installation made, with an exported kubeconfig.
type live struct {
	t       *testing.T
	running *running
	omni    *omnisim.Server
	uids    string
	writes  int
}

func startLive(t *testing.T, r *running) *live {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	l := &live{t: t, running: r, omni: sim}

	machines, err := sim.AddMachines(2)
	if err != nil {
		t.Fatal(err)
	}

	kubectl(t, r.hub, connection(t, sim)+fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: cluster-01}
spec:
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: cluster-01}
spec:
  clusterRef: {name: cluster-01}
  machines: [%s]
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniWorkers
metadata: {name: cluster-01}
spec:
  clusterRef: {name: cluster-01}
  machines: [%s]
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: cluster-01}
spec:
  clusterRef: {name: cluster-01}
  targetSecretRef: {name: cluster-01-kubeconfig}
  serviceAccount: {user: robot, groups: [robots]}
  ttl: 24h
  renewBefore: 4h
  deletionPolicy: Delete
`, machines[0], machines[1]), "apply", "-n", namespace, "-f", "-")

	l.ready()
	l.uids, l.writes = l.identities(), len(sim.Writes())

	return l
}

// ready waits until every object is Ready by a controller that runs now.
func (l *live) ready() {
	l.t.Helper()

	stamp := time.Now().Format(time.RFC3339Nano)
	kubectl(l.t, l.running.hub, "", "annotate", "ocl,oconn,oke", "--all", "-n", namespace, "--overwrite", "omni.texashpc.com/reconcile-requested-at="+stamp)

	eventually(l.t, l.running.hub, "everything to be Ready", func(stdout string) error {
		if want := strings.Repeat("True "+stamp+" ", 3); stdout != want {
			return fmt.Errorf("got %q, want %q", stdout, want)
		}

		return nil
	}, "get", "oconn,ocl,oke", "-n", namespace,
		"-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.status.lastHandledReconcileAt} {end}`)
}

// identities are the UIDs of all objects.
func (l *live) identities() string {
	l.t.Helper()

	return kubectl(l.t, l.running.hub, "", "get", "omni", "-n", namespace, "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.uid} {end}")
}

// kindsAreGone waits until kube-apiserver does not know our kinds, and gives its controllers time to do harm: the
// garbage collector looks for owners that it cannot find.
func (l *live) kindsAreGone() {
	l.t.Helper()

	if err := env.Eventually(l.t.Context(), eventuallyTimeout, "the kinds to be gone", func(ctx context.Context) error {
		_, _, err := l.running.hub.Kubectl(ctx, "get", "--raw", "/apis/omni.texashpc.com/v1alpha1")
		if err == nil {
			return errors.New("they are served")
		}

		return nil
	}); err != nil {
		l.t.Fatal(err)
	}

	time.Sleep(2 * time.Second)
}

// untouched: Omni has the cluster, and nobody wrote anything.
func (l *live) untouched(when string) {
	l.t.Helper()

	view, err := l.omni.View(inUse)
	if err != nil || !view.Exists || view.Deleting || view.Machines["cluster-01-control-planes"] != 1 || view.Machines["cluster-01-cluster-01"] != 1 {
		l.t.Errorf("%s Omni has %+v, %v", when, view, err)
	}

	if writes := l.omni.Writes(); len(writes) != l.writes {
		l.t.Errorf("%s Omni was written to: %+v", when, writes[l.writes:])
	}
}

// secretsStay: neither the key nor the exported kubeconfig goes with the operator.
func (l *live) secretsStay() {
	l.t.Helper()

	if got := kubectl(l.t, l.running.hub, "", "get", "secret", "omni-service-account", "cluster-01-kubeconfig", "-n", namespace,
		"-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp};{end}"); got != "omni-service-account ;cluster-01-kubeconfig ;" {
		l.t.Errorf("Secrets: %q", got)
	}
}

// removeForGood deletes the Secrets that are left, as deleting the namespace would. One of them waits for the operator,
// until the commands of the how-to let go of it.
func (l *live) removeForGood() {
	l.t.Helper()

	const theirs = "example.com/of-somebody-else"

	kubectl(l.t, l.running.hub, "", "patch", "secret", "omni-service-account", "-n", namespace, "--type=json",
		"-p", `[{"op":"add","path":"/metadata/finalizers/0","value":"`+theirs+`"}]`)
	kubectl(l.t, l.running.hub, "", "delete", "secret", "omni-service-account", "cluster-01-kubeconfig", "-n", namespace, "--wait=false")

	remaining := []string{"get", "secrets", "-n", namespace, "--field-selector=type=Opaque", "-o", "jsonpath={.items[*].metadata.name}"}
	if got := kubectl(l.t, l.running.hub, "", remaining...); got != "omni-service-account" {
		l.t.Errorf("Secrets that cannot go: %q", got)
	}

	runShell(l.t, l.running.hub, shellBlock(l.t, filepath.Join(root, "docs/how-to/install.md"), "omni.texashpc.com/in-use"))

	if got := kubectl(l.t, l.running.hub, "", "get", "secret", "omni-service-account", "-n", namespace, "-o", "jsonpath={.metadata.finalizers[*]}"); got != theirs {
		l.t.Errorf("the commands of the how-to leave the finalizers %q", got)
	}

	kubectl(l.t, l.running.hub, "", "patch", "secret", "omni-service-account", "-n", namespace, "--type=json",
		"-p", `[{"op":"remove","path":"/metadata/finalizers/0"}]`)

	if got := kubectl(l.t, l.running.hub, "", remaining...); got != "" {
		l.t.Errorf("the commands of the how-to leave %q", got)
	}

	l.untouched("after everything was deleted")
}
