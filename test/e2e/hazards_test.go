package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The rule of these tests: nothing in Omni is ever destroyed that the user did not clearly ask to
// destroy, and nothing that was asked for is forgotten. docs/concepts/remote-safety.md lists them.

// destroyed lists what our operator asked Omni to tear down, in order, each once.
func (f *fleet) destroyed() []string {
	var all []string

	for _, write := range f.omni.Writes() {
		line := strings.TrimSuffix(string(write.Type), "s.omni.sidero.dev") + " " + write.ID
		if (write.Verb == "Teardown" || write.Verb == "Destroy") && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}

	return all
}

// wantDestroyed compares with what may be destroyed, literally.
func (f *fleet) wantDestroyed(want ...string) {
	f.t.Helper()

	if diff := cmp.Diff(want, f.destroyed()); diff != "" {
		f.t.Errorf("destroyed in Omni (-want +got):\n%s", diff)
	}
}

// unchanged checks that a cluster of fleet.cluster has all of its machines, and that nothing was destroyed.
func (f *fleet) unchanged(name string) {
	f.t.Helper()
	f.wantDestroyed()

	if diff := cmp.Diff(map[string]int{name + "-control-planes": 1, name + "-" + name + "-w": 2}, f.view(name).Machines); diff != "" {
		f.t.Errorf("machines in Omni (-want +got):\n%s", diff)
	}
}

// reconciled waits until the controller has looked at the cluster once more.
func (f *fleet) reconciled(name string) v1alpha1.OmniCluster {
	f.t.Helper()

	request := time.Now().Format(time.RFC3339Nano)
	f.run("annotate", "ocl", name, "--overwrite", "omni.texashpc.com/reconcile-requested-at="+request)

	var cluster v1alpha1.OmniCluster

	f.wait("the request to be handled", func() error {
		var err error
		if cluster, err = tryGet[v1alpha1.OmniCluster](f.space, "ocl", name); err == nil && cluster.Status.LastHandledReconcileAt != request {
			err = fmt.Errorf("handled %q", cluster.Status.LastHandledReconcileAt)
		}

		return err
	})

	return cluster
}

func (f *fleet) waitRemoteGone(name string) {
	f.t.Helper()
	f.wait("cluster "+name+" to leave Omni", func() error {
		if view := f.view(name); view.Exists {
			return fmt.Errorf("Omni has %+v", view)
		}

		return nil
	})
}

// says waits for a condition and checks that its message names what helps.
func (f *fleet) says(name, condition string, status metav1.ConditionStatus, reason string, texts ...string) {
	f.t.Helper()

	message := f.waitCondition("ocl", name, condition, status, reason)
	f.t.Logf("%s: %s: %s", condition, reason, message)

	for _, text := range texts {
		if !strings.Contains(message, text) {
			f.t.Errorf("the message does not say %q: %s", text, message)
		}
	}
}

// Pruning tools delete the documents in any order; with orphan nothing of it reaches Omni.
func TestPruneOfEverythingWithOrphan(t *testing.T) {
	f := newFleet(t)
	f.cluster("kept", "  deletePolicy: {orphan: true}")
	f.run("delete", "ow/kept-w", "ocp/kept-cp", "ocl/kept", "--timeout=60s")
	f.unchanged("kept")

	if owner := f.view("kept").Annotations[v1alpha1.MarkOwnerUID]; owner != "" {
		t.Errorf("the mark stayed: %s", owner)
	}
}

// Without orphan the cluster was clearly asked to go, suspended or not.
func TestPruneOfEverythingWithoutOrphan(t *testing.T) {
	f := newFleet(t)
	f.cluster("gone")
	f.run("patch", "ocl", "gone", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	f.run("delete", "ow/gone-w", "ocp/gone-cp", "ocl/gone", "--timeout=60s")
	f.waitRemoteGone("gone")
}

// A control plane is never destroyed because its document is missing, for a moment or for long.
func TestControlPlaneDocumentReplaced(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")

	if _, err := f.tryInput(controlPlaneManifest("c-cp", "c", f.machines[0]), "replace", "--force", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	f.reconciled("c")
	f.run("delete", "ocp", "c-cp")
	f.says("c", v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing, "OmniControlPlane")
	time.Sleep(settleTime + time.Second) // nothing happens in this time, which no poll can see
	f.reconciled("c")
	f.apply(controlPlaneManifest("c-cp-2", "c", f.machines[0]))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.unchanged("c")
}

// All documents but the cluster are deleted, and come back one by one much later: the settle time
// starts when the plan can be made again, so that the worker set is back before it ends.
func TestSettleTimeStartsAgainAfterAGap(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	f.run("delete", "ow", "c-w")
	f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle)
	f.run("delete", "ocp", "c-cp")
	f.waitCondition("ocl", "c", v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing)
	time.Sleep(settleTime) // the old settle time would be over

	f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]))
	f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle, `MachineSet "c-c-w"`)
	f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.unchanged("c")
}

// A machine goes from one set to another in two applies: it is moved, not thrown away, and in
// between the plan waits.
func TestMachineMovedInTwoApplies(t *testing.T) {
	f := newFleet(t)
	f.apply(workersManifest("a", "c", "machines: ["+f.machines[1]+", "+f.machines[2]+"]"), workersManifest("b", "c", "machines: []"))
	f.cluster("c")

	// First in both: nobody can tell what is meant.
	f.apply(workersManifest("b", "c", "machines: ["+f.machines[1]+"]"))
	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDuplicateMachine, f.machines[1], `"a"`, `"b"`)
	f.wantDestroyed()
	f.apply(workersManifest("a", "c", "machines: ["+f.machines[2]+"]"))
	f.waitMachines("c", "b", 1)
	f.waitMachines("c", "a", 1)
	f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSetNode " + f.machines[1])
}

// A set is renamed in two applies, the old one first: only the old set goes.
func TestWorkerSetRenamed(t *testing.T) {
	f := newFleet(t)
	f.apply(workersManifest("old", "c", classOf(pool, 1)))
	f.cluster("c")
	f.run("delete", "ow", "old")
	f.apply(workersManifest("new", "c", classOf(pool, 1)))
	f.waitMachines("c", "new", 1)
	f.wait("the old set to go", func() error {
		if _, found := f.view("c").Machines["c-old"]; found {
			return fmt.Errorf("Omni has it")
		}

		return nil
	})
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSet c-old")
}

// Two objects name one cluster in Omni, from two namespaces: the second is refused, and its
// deletion leaves the first one's cluster alone.
func TestTwoObjectsForOneCluster(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")

	other := &fleet{space: &space{t: t, name: f.name + "-2"}, omni: f.omni, key: f.key, machines: f.machines}
	other.run("create", "namespace", other.name)
	other.apply(secretManifest("key", f.key), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())),
		clusterManifest("c"), controlPlaneManifest("cp", "c", f.machines[1]))
	other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c", "clusterName")
	other.run("delete", "ocl", "c", "--timeout=60s")
	f.unchanged("c")

	// In one namespace, through two connections.
	f.apply(connectionManifest("second", f.omni.Endpoint(), "key", string(f.omni.CAPEM())),
		strings.Replace(clusterManifest("twin", "  clusterName: c"), "name: omni", "name: second", 1), controlPlaneManifest("twin-cp", "twin", f.machines[1]))
	f.says("twin", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c")
	f.run("delete", "ocl", "twin", "--timeout=60s")
	f.unchanged("c")
}

// The object is forced away and made again at once: another UID, so the cluster is not its own.
func TestObjectMadeAgainAfterItsFinalizerWasRemoved(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	stack.Controller.Kill()
	f.run("delete", "ocl", "c", "--wait=false")
	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	f.apply(clusterManifest("c"))

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c")
	f.run("delete", "ocl", "c", "--timeout=60s")
	f.unchanged("c")
}

// The status is wiped behind the controller's back: what carries the mark still goes on DELETE.
func TestStatusWipedThenDeleted(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	stack.Controller.Kill()
	f.run("patch", "ocl", "c", "--subresource=status", "--type=merge", "-p", `{"status":null}`)
	f.run("delete", "ocl", "c", "--wait=false")

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}

// The connection is led to another Omni that has a cluster of this name: nothing there is touched,
// and the deletion does not end silently while the real cluster runs on.
func TestConnectionLedElsewhere(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")

	other, err := omnisim.Start(omnisim.Options{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(other.Close)

	key, err := other.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	if err := omnisim.CreateForeignCluster(t.Context(), other.State(), "c", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	f.apply(secretManifest("key", key), connectionManifest("omni", other.Endpoint(), "key", string(other.CAPEM())))
	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned)
	f.run("delete", "ocl", "c", "--wait=false")
	f.says("c", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonEndpointChanged, f.omni.Endpoint(), other.Endpoint(), "orphan")

	if view, err := other.View("c"); err != nil || !view.Exists || len(other.Writes()) != 0 {
		t.Errorf("the other Omni's cluster was touched: %+v %v", view, err)
	}

	f.unchanged("c")
	f.apply(secretManifest("key", f.key), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))
	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}

// Connection and key are deleted first, as hard as kubectl can: they wait for the cluster.
func TestConnectionAndKeyDeletedFirst(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	f.run("delete", "oconn/omni", "secret/key", "--force", "--grace-period=0", "--cascade=foreground", "--wait=false")

	message := f.waitCondition("oconn", "omni", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonInUse)
	if !strings.Contains(message, `"c"`) {
		t.Errorf("the message does not name the cluster: %s", message)
	}

	f.unchanged("c")
	f.run("delete", "ocl", "c", "--timeout=60s")
	f.waitRemoteGone("c")
	f.waitGone("oconn", "omni")
	f.waitGone("secret", "key")
}
