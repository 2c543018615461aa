package e2eflux

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forced is a Kustomization that deletes and makes again what has an edit which looks to Flux like one of an immutable field.
const forced = "  force: true"

// With force: true Flux deletes an object, and makes it again, when the server answers its dry run with 409 or 422, or writes that something
// "is immutable". No refusal of ours is of that kind: each edit leaves all objects as they are, and the Kustomization says what is wrong.
func TestForceDeletesNothing(t *testing.T) {
	d := newDesk(t)
	d.files[fleetFile] = documents(d.connection(), cluster("demo"),
		ours("OmniControlPlane", "demo", "  clusterRef: {name: demo}\n  machines: ["+controlPlaneMachine+"]"), set("OmniWorkers", "demo-workers", "demo", 1),
		ours("OmniMachine", controlPlaneMachine, "  clusterRef: {name: demo}\n  install: {disk: /dev/vda}"), export("access", "demo", "Delete"))
	whole := d.files[fleetFile]
	d.apply(d.sourceManifest(), kustomizationManifest("fleet", forced+"\n"+waiting))
	d.waitApplied("fleet", d.push())

	before, requests := d.identities(), d.destroying()

	for _, row := range []struct{ name, old, edited, says string }{
		{"mistyped version", "talos: {version: v1.13.3}", "talos: {version: 1.13.x}", "spec.talos.version"},
		{"name of the cluster", "  talos: {version", "  clusterName: other\n  talos: {version", "spec.clusterName"},
		{"connection", "connectionRef: {name: omni}", "connectionRef: {name: another}", "spec.connectionRef.name"},
		{"cluster of a set", "  clusterRef: {name: demo}\n  machineClass", "  clusterRef: {name: other}\n  machineClass", "spec.clusterRef.name"},
		{"cluster of the control plane", "  clusterRef: {name: demo}\n  machines", "  clusterRef: {name: other}\n  machines", "spec.clusterRef.name"},
		{"cluster of a machine", "  clusterRef: {name: demo}\n  install", "  clusterRef: {name: other}\n  install", "spec.clusterRef.name"},
		{"ID of a machine", "  install: {disk", "  machineID: 1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a02\n  install: {disk", "spec.machineID"},
		{"cluster of a kubeconfig", "  clusterRef: {name: demo}\n  targetSecretRef", "  clusterRef: {name: other}\n  targetSecretRef", "spec.clusterRef.name"},
		{"value of a wrong type", "size: 1", "size: {of: 1}", "demo-workers"},
		{"field that does not exist", "size: 1}", "size: 1}\n  machineCalss: {name: general}", "machineCalss"},
		{"UID of a live object", "metadata:\n  name: demo\n", "metadata:\n  name: demo\n  uid: 9b0f3b2e-1111-4222-8333-444455556666\n", "metadata.uid"},
		{"version of a live object", "metadata:\n  name: demo\n", "metadata:\n  name: demo\n  resourceVersion: \"1\"\n", "metadata.resourceVersion"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := d.in(t)
			d.change(fleetFile, row.old, row.edited)
			d.push()
			d.failed("fleet", row.says)

			if after := d.identities(); after != before {
				t.Errorf("objects were deleted\nbefore:\n%s\nafter:\n%s", before, after)
			}

			d.files[fleetFile] = whole
			d.waitApplied("fleet", d.push())
		})
	}

	if after := d.destroying(); after != requests {
		t.Errorf("%d requests to destroy something in Omni, want %d", after, requests)
	}
}

// failed waits until a Kustomization says why it could not be applied.
func (d *desk) failed(name string, words ...string) {
	d.t.Helper()
	d.wait("Kustomization "+name+" to say "+strings.Join(words, ", "), func() error {
		ready := meta.FindStatusCondition(get[object](d, "kustomization", name).Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(ready.Message, word) }) {
			return fmt.Errorf("%+v", ready)
		}

		d.t.Logf("%s: %s", ready.Reason, ready.Message)

		return nil
	})
}

// identities are our objects with their UIDs: one that was deleted and made again has another.
func (d *desk) identities() string {
	return d.run("get", "omni", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}\n{end}")
}

// destroying counts the requests to Omni that destroy something, whatever it answered.
func (d *desk) destroying() (count int) {
	for request, times := range d.omni.Requests() {
		if slices.Contains([]string{"Teardown", "Destroy", "TeardownAndDestroy"}, request.Method) {
			count += times
		}
	}

	return count
}
