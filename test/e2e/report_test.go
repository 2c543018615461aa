package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// reportCanary stands for a secret inside a patch. It must not show anywhere.
const reportCanary = "c4n4ry-of-the-report"

// A plan that waits can be read before anything happens: as counts, as a list, as a diff without
// anything secret; and each change that was made has one event.
func TestPlanCanBeRead(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	patches := func(value string) string {
		return "  patches:\n  - name: token\n    inline: {machine: {env: {TOKEN: " + value + "}}}"
	}
	f.cluster("c", "  changePolicy: ConfirmDestructive", patches(reportCanary))
	f.waitEvents("c", "Created", `Cluster "c"`, `MachineSet "c-c-w" (none -> pool-a/2)`, `MachineSet "c-control-planes" (none -> 1)`,
		`MachineSetNode "`+f.machines[0]+`"`, `ConfigPatch`)

	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	f.waitCondition("ocl", "c", v1alpha1.ConditionSuspended, metav1.ConditionTrue, "")
	f.apply(clusterManifest("c", "  suspend: true", "  changePolicy: ConfirmDestructive", "  labels: {team: b}", patches("2-"+reportCanary)))
	f.run("scale", "omniworkers/c-w", "--replicas=1")

	var plan *v1alpha1.OmniClusterPlan

	f.wait("the plan", func() error {
		if plan = get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.Plan; plan == nil || plan.Updates != 3 {
			return fmt.Errorf("plan %+v", plan)
		}

		return nil
	})

	for _, text := range []string{
		"# update MachineSet \"c-c-w\" (pool-a/2 -> pool-a/1): lowers its machine count (destructive)\n",
		"-    machineCount: 2\n+    machineCount: 1\n", "+labels:\n+  team: b\n", "~content changes: ",
	} {
		if !strings.Contains(plan.Diff, text) {
			t.Errorf("the diff does not say %q:\n%s", text, plan.Diff)
		}
	}

	if plan.Destructive != 1 || !plan.Changes[0].Destructive || !plan.Changes[0].NeedsApproval || plan.Changes[1].NeedsApproval {
		t.Errorf("plan %+v", plan)
	}

	wide := f.run("get", "ocl", "c", "-o", "wide")
	described := f.run("describe", "ocl", "c")
	t.Logf("kubectl get ocl -o wide:\n%s\nkubectl describe ocl:\n%s", wide, described)

	if !strings.Contains(wide, " +0 ~3 -0 !1 ") {
		t.Errorf("the table does not show the plan:\n%s", wide)
	}

	// The patch itself stands in the spec, which is the user's own.
	_, reported, _ := strings.Cut(described, "\nStatus:")
	if reported == "" || strings.Contains(reported, reportCanary) {
		t.Errorf("the report shows what is secret, or nothing:\n%s", reported)
	}

	if log, err := os.ReadFile(stack.Controller.LogPath()); err != nil || strings.Contains(string(log), reportCanary) {
		t.Errorf("the log shows what is secret: %v", err)
	}

	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"suspend":false,"approvedPlan":"`+plan.Hash+`"}}`)
	f.waitMachines("c", "c-w", 1)
	f.waitEvents("c", "Updated", `MachineSet "c-c-w" (pool-a/2 -> pool-a/1); destructive: lowers its machine count`, `Cluster "c"`, `ConfigPatch`)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	// Nothing is told twice.
	before := f.events("c", "Updated")
	f.reconciled("c")

	if after := f.events("c", "Updated"); len(before) != 3 || len(after) != 3 {
		t.Errorf("events: %q, then %q", before, after)
	}
}

// atOnce is how long something may take that nobody polls for: the aim is half a second, the rest is room
// for a busy machine, and far less than the five minutes of the next look without a cause.
const atOnce = time.Minute

// What Omni says of a cluster, a set and a machine shows within a second, without polling.
func TestStatusFollowsOmni(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(machineManifest(f.machines[0], "c"))
	f.cluster("c")
	f.waitCondition("om", f.machines[0], v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.omni.Pause()

	for _, step := range []struct {
		what   string
		change func()
		shown  func() error
	}{
		{"a machine that reboots", func() {
			change(f, omni.NewClusterMachineStatus(f.machines[0]), func(found *omni.ClusterMachineStatus) {
				found.TypedSpec().Value.Stage, found.TypedSpec().Value.Ready = specs.ClusterMachineStatusSpec_REBOOTING, false
			})
		}, func() error {
			return f.shows("om", f.machines[0], "{.status.stage} {.status.conditions[?(@.type=='Ready')].status}", "Rebooting False")
		}},
		{"a machine that is not connected", func() {
			change(f, omni.NewMachineStatus(f.machines[0]), func(found *omni.MachineStatus) { found.TypedSpec().Value.Connected = false })
		}, func() error {
			return f.shows("om", f.machines[0], "{.status.connected}", "false")
		}},
		{"a set with a locked update", func() {
			change(f, omni.NewMachineSetStatus("c-c-w"), func(found *omni.MachineSetStatus) {
				found.TypedSpec().Value.LockedUpdates, found.TypedSpec().Value.Ready = 1, false
			})
		}, func() error {
			return f.shows("ow", "c-w", "{.status.conditions[?(@.type=='Ready')].status}", "False")
		}},
		{"a Kubernetes upgrade", func() {
			change(f, omni.NewKubernetesUpgradeStatus("c"), func(found *omni.KubernetesUpgradeStatus) {
				found.TypedSpec().Value.Phase, found.TypedSpec().Value.Step = specs.KubernetesUpgradeStatusSpec_Upgrading, "updating kubelets"
			})
		}, func() error {
			return f.shows("ocl", "c", "{.status.omni.upgrades.kubernetes.phase} {.status.omni.upgrades.kubernetes.step} {.status.conditions[?(@.type=='Ready')].reason}",
				"Upgrading updating kubelets Upgrading")
		}},
		{"a Talos upgrade that failed", func() {
			change(f, omni.NewTalosUpgradeStatus("c"), func(found *omni.TalosUpgradeStatus) {
				found.TypedSpec().Value.Phase, found.TypedSpec().Value.Error = specs.TalosUpgradeStatusSpec_Failed, "no such image"
			})
		}, func() error {
			return f.shows("ocl", "c", "{.status.omni.upgrades.talos.phase} {.status.omni.upgrades.talos.error}", "Failed no such image")
		}},
	} {
		step.change()

		started := time.Now()
		f.wait(step.what, step.shown)

		took := time.Since(started)
		t.Logf("%s is shown after %s", step.what, took.Round(10*time.Millisecond))

		if took > atOnce {
			t.Errorf("%s is shown after %s", step.what, took)
		}
	}

	if got := get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.Omni.MachineSets[0]; got.LockedUpdates != 1 {
		t.Errorf("set %+v", got)
	}

	f.omni.Resume()
}

// change changes what Omni's own controllers say.
func change[R resource.Resource](f *fleet, item R, edit func(R)) {
	f.t.Helper()

	if err := tryChange(f.t.Context(), f.omni.Unchecked(), item, edit); err != nil {
		f.t.Fatal(err)
	}
}

func tryChange[R resource.Resource](ctx context.Context, st state.State, item R, edit func(R)) error {
	found, err := st.Get(ctx, item.Metadata())
	if err != nil {
		return err
	}

	_, err = st.UpdateWithConflicts(ctx, item.Metadata(), func(found resource.Resource) error {
		edit(found.(R)) // the state gives what was asked for

		return nil
	}, state.WithUpdateOwner(found.Metadata().Owner()), state.WithExpectedPhaseAny())

	return err
}

// A machine dies while its set goes: the condition says which machine, and what helps. Deleting
// the cluster says it, too, and destroyMachines lets it go.
func TestTeardownSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]"))
	f.cluster("c")
	f.omni.KillMachine(f.machines[1])
	f.run("delete", "ow", "static")

	var message string

	f.wait("the dead machine to be named", func() error {
		message = f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
		if !strings.Contains(message, "not connected") {
			return fmt.Errorf("%s", message)
		}

		return nil
	})
	t.Log(message)

	for _, text := range []string{`MachineSet "c-static"`, "machine " + f.machines[1] + " (not connected) since 20", "bring it back"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message does not say %q: %s", text, message)
		}
	}

	f.waitEvents("c", "Destroyed", `MachineSet "c-static" (1 -> none); destructive: resets the machines of the set`)

	f.run("delete", "ocl", "c", "--wait=false")
	f.says("c", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonWaitingForMachines,
		f.machines[1]+" (not connected) since 20", "destroyMachines: true", "bring it back")

	// A second look writes nothing.
	f.settled(func() string { return f.run("get", "ocl", "c", "-o", "jsonpath={.metadata.resourceVersion}") })

	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"deletePolicy":{"destroyMachines":true}}}`)
	f.waitGone("ocl", "c")
}
