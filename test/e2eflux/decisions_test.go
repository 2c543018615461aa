package e2eflux

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"omni.texashpc.com/omni-cluster-operator/cmd/kubectl-omni/app"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// rolloutPolicy is a policy of two stages; a person promotes the second one.
const rolloutPolicy = `
  clusterSelector: {matchExpressions: [{key: tier, operator: Exists}]}
  stages:
    - {name: canary, clusterSelector: {matchLabels: {tier: canary}}, soakTime: 1s}
    - {name: prod, promotion: Manual, soakTime: 1s}`

// What a person decides with the plugin stays, as long as Git does not set the same field: Flux takes only fields away whose
// manager has a name that begins with kubectl.
func TestDecisionsOutliveFlux(t *testing.T) {
	d := newDesk(t)
	d.files[fleetFile] = documents(d.connection(), cluster("demo"), set("OmniControlPlane", "demo", "demo", 1), ours("OmniRolloutPolicy", "fleet", rolloutPolicy))
	revision := d.push()
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", revision)

	d.plugin("hold", "fleet")
	d.plugin("suspend", "demo")
	d.plugin("promote", "fleet", "prod", "--yes")
	d.run("annotate", "ocl", "demo", "--field-manager="+v1alpha1.FieldManagerByHand, v1alpha1.AnnotationRecreate+"=kept")
	d.run("annotate", "ocp", "demo", "by-kubectl=taken")

	for range 2 {
		d.reconcile("fleet")
	}

	demo, policy := get[v1alpha1.OmniCluster](d, "ocl", "demo"), get[v1alpha1.OmniRolloutPolicy](d, "orp", "fleet")
	if !policy.Spec.Hold || policy.Annotations[v1alpha1.AnnotationPromotePrefix+"prod"] == "" {
		t.Errorf("of the policy Flux left hold %v and the annotations %v", policy.Spec.Hold, policy.Annotations)
	}

	if !demo.Spec.Suspend || demo.Annotations[v1alpha1.AnnotationRecreate] != "kept" {
		t.Errorf("of the cluster Flux left suspend %v and the annotations %v", demo.Spec.Suspend, demo.Annotations)
	}

	if set := get[object](d, "ocp", "demo"); set.Annotations["by-kubectl"] != "" {
		t.Error("Flux takes nothing away that kubectl wrote: the pages say that it does")
	}

	d.plugin("resume", "demo")
	d.plugin("hold", "fleet", "--release")
	d.reconcile("fleet")
}

// plugin runs kubectl omni in Flux's namespace.
func (d *desk) plugin(args ...string) {
	d.t.Helper()

	var out, errOut bytes.Buffer

	args = append(args, "--kubeconfig", stack.Hub.KubeconfigPath, "--cache-dir", d.t.TempDir(), "-n", env.FluxNamespace)
	if status := app.Main(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, args); status != 0 {
		d.t.Fatalf("kubectl omni %v: status %d: %s%s", args, status, &out, &errOut)
	}
}

// reconcile lets Flux apply a Kustomization again, and waits until it has.
func (d *desk) reconcile(name string) {
	d.t.Helper()

	token := time.Now().Format(time.RFC3339Nano)
	d.run("annotate", "kustomization", name, "reconcile.fluxcd.io/requestedAt="+token, "--overwrite")
	d.wait("Kustomization "+name+" to be reconciled", func() error {
		state := get[object](d, "kustomization", name)

		ready := meta.FindStatusCondition(state.Status.Conditions, "Ready")
		if state.Status.LastHandledReconcileAt != token || ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("handled %s, %+v", state.Status.LastHandledReconcileAt, ready)
		}

		return nil
	})
}

// Files that Flux has applied differ in nothing from what is there: Flux's own labels are in no file.
func TestPlanOfWhatFluxApplied(t *testing.T) {
	d := newDesk(t)
	d.files[fleetFile] = documents(d.connection(), cluster("demo"), set("OmniControlPlane", "demo", "demo", 1))
	revision := d.push()
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", revision)

	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(d.files[fleetFile]), 0o600); err != nil {
		t.Fatal(err)
	}

	d.plugin("plan", "-f", file)
}
