package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The commands of docs/how-to/approve.md, as they stand there.
func TestApproveAPlan(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("c", "  changePolicy: ConfirmDestructive")
	f.run("delete", "ow", "c-w")
	f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, `destroy MachineSet "c-c-w"`, "kubectl patch omnicluster c -n ")
	f.unchanged("c")

	shown := f.run("get", "ocl", "c", "-o", `jsonpath={.status.plan.hash}{"\n"}{range .status.plan.changes[?(@.needsApproval==true)]}{.action} {.type} {.id}{"\n"}{end}{.status.plan.diff}`)

	hash, rest, _ := strings.Cut(shown, "\n")
	if len(hash) != 64 {
		t.Fatalf("hash %q", hash)
	}

	if !strings.HasPrefix(rest, "Destroy MachineSets.omni.sidero.dev c-c-w\n# ") {
		t.Errorf("what needs approval, and the diff: %q", rest)
	}

	// An approval of another plan is told, and approves nothing.
	f.run("patch", "omnicluster", "c", "--type=merge", "-p", `{"spec":{"approvedPlan":"`+strings.Repeat("0", 64)+`"}}`)
	f.wait("the stale approval to be told", func() error {
		cluster, err := tryGet[anyKind](f.space, "ocl", "c")
		if told := describe(cluster.Status.Conditions); !strings.Contains(told, "approves another plan, the current one is "+hash) {
			err = errors.Join(err, errors.New(told))
		}

		return err
	})
	f.unchanged("c")

	f.run("patch", "omnicluster", "c", "--type=merge", "-p", `{"spec":{"approvedPlan":"`+hash+`"}}`)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSet c-c-w")
}

// The commands of docs/how-to/adopt.md: a cluster made by hand is looked at, taken over and cleaned up.
// It kills the controller, so it is not parallel.
func TestAdoptAClusterMadeByHand(t *testing.T) {
	slow(t)
	f := newFleet(t)

	if err := omnisim.CreateForeignCluster(t.Context(), f.omni.State(), "c", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	theirs := omni.NewMachineSet("c-theirs")
	theirs.Metadata().Labels().Set(omni.LabelCluster, "c")
	theirs.Metadata().Labels().Set(omni.LabelWorkerRole, "")

	node := omni.NewMachineSetNode(f.machines[3], theirs)
	node.Metadata().Labels().Set(omni.LabelCluster, "c")

	if err := f.omni.State().Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	if err := f.omni.State().Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}

	// A look that writes nothing.
	f.apply(clusterManifest("c", "  adopt: true", "  changePolicy: Observe"), controlPlaneManifest("c-cp", "c", f.machines[0]),
		workersManifest("c-w", "c", classOf(pool, 2)))
	f.says("c", v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned, "has no owner", "spec.adopt")
	f.reconciled("c")

	if writes := f.omni.Writes(); len(writes) > 0 {
		t.Errorf("an observer wrote %+v", writes)
	}

	f.run("patch", "omnicluster", "c", "--type=merge", "-p", `{"spec":{"changePolicy":"Apply"}}`)
	f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, `"c-theirs"`, "the cluster is being adopted")

	if got := f.run("get", "ocl", "c", "-o", "jsonpath={.status.adopting}"); got != "true" {
		t.Errorf("adopting: %q", got)
	}

	f.wantDestroyed()

	// The controller may die now: the next one waits for the approval, too.
	stack.Controller.Kill()

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	hash := strings.TrimSpace(f.run("get", "ocl", "c", "-o", "jsonpath={.status.plan.hash}"))
	f.reconciled("c")
	f.wantDestroyed()
	f.run("patch", "omnicluster", "c", "--type=merge", "-p", `{"spec":{"approvedPlan":"`+hash+`"}}`)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSet c-theirs")
	f.waitShows("the adoption to end", "ocl", "c", "{.status.adopting}", "")
}

// A worker set is renamed, and the new document comes only after the settle time: the machines of the
// old set were asked to go, and nothing else goes.
func TestWorkerSetRenamedAfterTheSettleTime(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("c")
	f.run("delete", "ow", "c-w")
	f.wait("the old set to go", func() error {
		if machines := f.view("c").Machines; len(machines) != 1 {
			return fmt.Errorf("Omni has %v", machines)
		}

		return nil
	})
	f.apply(workersManifest("renamed", "c", classOf(pool, 2)))
	f.waitMachines("c", "renamed", 2)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSet c-c-w")
}

// Omni takes a write and never answers: the call ends at its deadline, the condition says what Omni
// did not answer, and it goes on by itself.
func TestOmniHangsInsideAnApply(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("c")

	remove := f.omni.Inject(omnisim.Fault{Method: "Update", Type: omni.MachineSetType, Hang: true})
	t.Cleanup(remove)

	started := time.Now()

	f.run("scale", "omniworkers/c-w", "--replicas=3")
	f.wait("the condition to tell", func() error {
		cluster, err := tryGet[anyKind](f.space, "ocl", "c")
		if told := describe(cluster.Status.Conditions); !strings.Contains(told, `update MachineSet "c-c-w": Omni cannot be reached`) {
			err = errors.Join(err, fmt.Errorf("after %s: %s", time.Since(started).Round(time.Second), told))
		}

		return err
	})
	remove()
	f.waitMachines("c", "c-w", 3)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed()
}
