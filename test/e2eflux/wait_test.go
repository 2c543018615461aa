package e2eflux

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// fleetFile holds everything that the Kustomization fleet applies.
const fleetFile = "fleet/all.yaml"

// waiting is a Kustomization that waits for all its objects.
const waiting = "  wait: true"

// everyKind is one object of each kind, by resource name.
func everyKind() map[string]string {
	return map[string]string{
		"oconn": "omni", "ocl": "demo", "ocp": "demo", "ow": "demo-workers", "om": controlPlaneMachine, "oke": "access", "oss": "registry",
		"ohr": "settings",
	}
}

// freeForm is a block whose numbers and strings must stay as they are.
const freeForm = `{machine: {sysctls: {a: "1.0"}, kubelet: {extraConfig: {maxPods: 1048576}}}}`

// fleetOfEveryKind are their manifests.
func (d *desk) fleetOfEveryKind() string {
	return documents(
		d.connection(), cluster("demo", "  patches:", "  - name: p", "    inline: "+freeForm),
		ours("OmniControlPlane", "demo", "  clusterRef: {name: demo}\n  machines: ["+controlPlaneMachine+"]"),
		set("OmniWorkers", "demo-workers", "demo", 1),
		ours("OmniMachine", controlPlaneMachine, "  clusterRef: {name: demo}\n  install: {disk: /dev/vda}"),
		export("access", "demo", "Delete"), secretSync("registry", "demo", "access", "apps", "Delete"),
		d.helmRelease("settings", "demo", "access", "Uninstall"))
}

// A Kustomization that waits is Ready when every one of our objects is, and not before: not when it is
// new, not after a change, and not when one has failed.
func TestKustomizationWaitsForEveryKind(t *testing.T) {
	d := newDesk(t)
	d.applyTo(d.attach("demo"), deployers)
	d.omni.Pause() // machines do nothing
	d.files[fleetFile] = d.fleetOfEveryKind()
	first := d.push()
	d.apply(registrySecret, d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.isHeld(first)
	d.omni.Resume()
	d.waitApplied("fleet", first)
	d.everythingIsCurrent()
	d.secondRunChangesNothing()

	d.omni.Pause()
	d.change(fleetFile, "size: 1", "size: 2")
	second := d.push()
	d.isHeld(second)
	d.omni.Resume()
	d.waitApplied("fleet", second)
	d.everythingIsCurrent()

	t.Run("a failed object", func(t *testing.T) { d.in(t).showsFailure() })
	t.Run("a staged change", func(t *testing.T) { d.in(t).stages() })
}

// isHeld waits until the documents of a revision are in Omni, and watches that the Kustomization is not
// Ready while no machine follows.
func (d *desk) isHeld(revision string) {
	d.t.Helper()

	recorded := d.record("fleet")

	d.wait("the documents to be in Omni", func() error {
		state, err := tryGet[object](d, "ow", "demo-workers")
		if err != nil {
			return err
		}

		synced := meta.FindStatusCondition(state.Status.Conditions, v1alpha1.ConditionSynced)
		if synced == nil || synced.Status != metav1.ConditionTrue || synced.ObservedGeneration != state.Generation {
			return fmt.Errorf("conditions %v", state.Status.Conditions)
		}

		return nil
	})
	time.Sleep(8 * time.Second) // Flux looks every five

	if recorded.everReady(revision) || d.applied("fleet", revision) == nil {
		d.t.Error("the Kustomization is Ready while the machines are not")
	}
}

// everythingIsCurrent looks at all objects at the moment at which the Kustomization is Ready.
func (d *desk) everythingIsCurrent() {
	d.t.Helper()

	fleet := get[object](d, "kustomization", "fleet")
	since := meta.FindStatusCondition(fleet.Status.Conditions, "Ready").LastTransitionTime

	for resource, name := range everyKind() {
		read := get[unstructured.Unstructured](d, resource, name)

		result, err := status.Compute(&read)
		if err != nil || result.Status != status.CurrentStatus {
			d.t.Errorf("%s/%s is %v: %v", resource, name, result, err)
		}

		ready := meta.FindStatusCondition(get[object](d, resource, name).Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.LastTransitionTime.After(since.Time) {
			d.t.Errorf("%s/%s: %+v; the Kustomization is Ready since %s", resource, name, ready, since)
		}
	}
}

// secondRunChangesNothing lets Flux apply the same revision again: it finds no difference in anything.
func (d *desk) secondRunChangesNothing() {
	d.t.Helper()

	versions := func() string {
		return d.run("get", "omni", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion}\n{end}")
	}

	before := versions()

	d.reconcile("fleet")

	if after := versions(); after != before {
		d.t.Errorf("Flux changed what was as it should be\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

// showsFailure applies a second control plane, which stalls the cluster: Flux says so at once instead of
// waiting for its timeout, and names the object.
func (d *desk) showsFailure() {
	whole := d.files[fleetFile]
	d.files[fleetFile] = documents(whole, set("OmniControlPlane", "second", "demo", 1))
	d.push()
	d.wait("the failure to be told", func() error {
		state := get[object](d, "kustomization", "fleet")

		ready := meta.FindStatusCondition(state.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "OmniCluster/flux-system/demo") {
			return fmt.Errorf("%+v", ready)
		}

		return nil
	})

	d.files[fleetFile] = whole
	d.waitApplied("fleet", d.push())
	d.waitGone("ocp", "second")
}

// stages suspends the cluster together with a change: Flux does not wait for what shall not happen yet,
// and Omni gets the change with the end of the suspension.
func (d *desk) stages() {
	d.change(fleetFile, "kubernetes: {version: v1.35.1}", "kubernetes: {version: v1.35.4}\n  suspend: true")
	d.waitApplied("fleet", d.push())

	if view := d.view("demo"); view.KubernetesVersion != "1.35.1" {
		d.t.Errorf("the staged change is in Omni: %s", view.KubernetesVersion)
	}

	plan := get[v1alpha1.OmniCluster](d, "ocl", "demo").Status.Plan
	if plan == nil || plan.Updates != 1 {
		d.t.Errorf("plan %+v", plan)
	}

	d.change(fleetFile, "suspend: true", "suspend: false")
	d.waitApplied("fleet", d.push())

	if view := d.view("demo"); view.KubernetesVersion != "1.35.4" {
		d.t.Errorf("Flux called the upgrade done; Omni has %s", view.KubernetesVersion)
	}
}

// What "flux reconcile" writes on an object asks our controller, too.
func TestReconcileOnDemand(t *testing.T) {
	d := newDesk(t)
	d.files[fleetFile] = documents(d.connection(), cluster("demo"), set("OmniControlPlane", "demo", "demo", 1))
	revision := d.push()
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", waiting))
	d.waitApplied("fleet", revision)

	d.run("annotate", "ocl", "demo", "reconcile.fluxcd.io/requestedAt=now")
	d.wait("the request to be handled", func() error {
		if got := get[v1alpha1.OmniCluster](d, "ocl", "demo").Status.LastHandledReconcileAt; got != "now" {
			return errors.New("handled " + got)
		}

		return nil
	})
}
