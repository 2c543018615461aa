package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// upgradeHeld raises the version of the one cluster of a fleet under a policy, and waits until that is held.
func (f *fleet) upgradeHeld(reason string) {
	f.t.Helper()

	f.tiers(map[string]string{"c": "prod"})
	f.omni.ForgetRequests()
	f.apply(tiered("c", "prod", "v1.36.1"))
	f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, reason)
}

// machineOf is the one machine that a control plane lists.
func (f *fleet) machineOf(controlPlane string) string {
	f.t.Helper()

	return f.run("get", "ocp", controlPlane, "-o", "jsonpath={.spec.machines[0]}")
}

// destroyedNodes are the machines that somebody took out of a set.
func (f *fleet) destroyedNodes() []string {
	var names []string

	for _, write := range f.omni.Writes() {
		if write.Type == omnires.MachineSetNodeType && write.Verb == "Teardown" {
			names = append(names, write.ID)
		}
	}

	return names
}

// nothingWritten checks that Omni took no write.
func (f *fleet) nothingWritten() {
	f.t.Helper()

	if writes := f.omni.Writes(); len(writes) > 0 {
		f.t.Errorf("writes to Omni: %v", writes)
	}
}

// Accidents with rollouts: what is held stays held, and what was not asked for does not begin.
func TestRolloutHazard(t *testing.T) {
	t.Parallel()

	t.Run("selector edited", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy("  hold: true"))
		f.upgradeHeld(v1alpha1.ReasonPolicyOnHold)
		f.apply(strings.Replace(rolloutPolicy("  hold: true"), "key: tier", "key: another", 1))
		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonLeftPolicy)
		f.nothingWritten()

		// Other changes are free.
		f.apply(tiered("c", "prod", "v1.36.1", "  patches: [{name: a, inline: {machine: {env: {A: \"1\"}}}}]"))
		f.waitShows("the patch in Omni", "ocl", "c", "{.status.plan.held}/{.status.plan.creates}", "1/0")

		if got := f.clusterWrites(); len(got) > 0 {
			t.Errorf("updates of the Cluster: %v", got)
		}
	})

	t.Run("label taken off", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy("  hold: true"))
		f.upgradeHeld(v1alpha1.ReasonPolicyOnHold)
		f.run("label", "ocl", "c", "tier-")
		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonLeftPolicy)

		// Another reason to wait comes and goes.
		f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec": {"suspend": true}}`)
		f.waitShows("nothing to be held any more", "ocl", "c", `{.status.conditions[?(@.type=="Held")].reason}`, "")
		f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonLeftPolicy)
		f.nothingWritten()
	})

	t.Run("status of the policy lost", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy())
		f.upgradeHeld(v1alpha1.ReasonWaitingForStage)
		f.waitShows("the policy to count it", "orp", "fleet", "{.status.held}", "1")
		f.run("patch", "orp", "fleet", "--subresource=status", "--type=json", "-p", `[{"op": "remove", "path": "/status"}]`)
		f.waitShows("the policy to count it again", "orp", "fleet", "{.status.held}", "1")
		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
		f.nothingWritten()
	})

	t.Run("stage without clusters", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy())
		f.upgradeHeld(v1alpha1.ReasonWaitingForStage)

		message := f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
		if !strings.Contains(message, `stage "canary" has no clusters`) {
			t.Error(message)
		}

		f.nothingWritten()

		// Somebody promotes the stage.
		f.run("annotate", "orp", "fleet", "omni.texashpc.com/promote-prod="+promotedUntil())
		f.waitShows("v1.36.1 in Omni", "ocl", "c", "{.status.omni.kubernetesVersion}", "v1.36.1")
	})

	// The conflict ends at once, whichever way the other policy lets the cluster go.
	twoPolicies := func(t *testing.T, ends ...string) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy())
		f.apply(strings.Replace(rolloutPolicy(), "name: fleet", "name: second", 1))
		f.upgradeHeld(v1alpha1.ReasonPolicyConflict)
		f.nothingWritten()
		f.run(ends...)
		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
		f.nothingWritten()
	}

	t.Run("two policies", func(t *testing.T) { twoPolicies(t, "delete", "orp", "second") })

	t.Run("two policies, another selector", func(t *testing.T) {
		twoPolicies(t, "patch", "orp", "second", "--type=merge", "-p", `{"spec":{"clusterSelector":{"matchLabels":{"tier":"none"}}}}`)
	})

	// The stage goes by its other cluster.
	for name, pause := range map[string]func(*fleet) string{
		"canary suspended":      func(*fleet) string { return "  suspend: true" },
		"canary locked in Omni": func(f *fleet) string { f.lockCluster("b"); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFleet(t)
			f.apply(rolloutPolicy())
			f.tiers(map[string]string{"a": "canary", "b": "canary", "c": "prod"})
			f.omni.ForgetRequests()
			f.apply(tiered("b", "canary", "v1.36.1", pause(f)))
			f.apply(tiered("c", "prod", "v1.36.1"), tiered("a", "canary", "v1.36.1"))

			for _, name := range []string{"a", "c"} {
				f.waitShows(name+" to be done", "ocl", name, "{.status.rollout.last.result}", "Done")
			}

			if got := f.clusterWrites(); !slices.Equal(got, []string{"a", "c"}) {
				t.Errorf("updates of Clusters: %v", got)
			}
		})
	}

	t.Run("approval that nobody gives", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(fmt.Sprintf(oneByOne, false))
		f.tiers(map[string]string{"c": "x", "d": "x"})
		f.omni.ForgetRequests()
		f.apply(tiered("c", "x", "v1.36.1", "  changePolicy: ConfirmDestructive"), controlPlaneManifest("c-cp", "c", f.machines[2]))
		f.waitShows("c to have its version", "ocl", "c", "{.status.rollout.last.result}", "Done")
		f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)

		// It has no slot while it waits.
		f.apply(tiered("d", "x", "v1.36.1"))
		f.waitShows("d to have its version", "ocl", "d", "{.status.rollout.last.result}", "Done")

		if got, destroyed := f.clusterWrites(), f.destroyedNodes(); !slices.Equal(got, []string{"c", "d"}) || len(destroyed) > 0 {
			t.Errorf("updates of Clusters: %v, machines that left: %v", got, destroyed)
		}
	})

	// An even number of members of etcd must not wait for a week: the machine that comes waits with the one that goes.
	t.Run("version and patch and machine at once", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(fmt.Sprintf(oneByOne, true))
		f.tiers(map[string]string{"c": "prod"})
		f.omni.ForgetRequests()

		old, fresh := f.machineOf("c-cp"), f.machines[1]
		f.apply(tiered("c", "prod", "v1.36.1", "  patches: [{name: a, inline: {machine: {env: {A: \"1\"}}}}]"), controlPlaneManifest("c-cp", "c", fresh))
		f.waitShows("three kinds of changes to be held", "ocl", "c", "{.status.rollout.kinds}", `["KubernetesVersion","MachineConfig","MachineRemoval"]`)
		f.nothingWritten()

		f.apply(fmt.Sprintf(oneByOne, false))
		f.waitShows("the turn to be over", "ocl", "c", "{.status.rollout.last.result}", "Done")
		f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")

		if now := f.machineOf("c-cp"); now != fresh || old == fresh {
			t.Errorf("the control plane has %s, want %s", now, fresh)
		}

		f.wait("the machine to have left", func() error {
			if destroyed := f.destroyedNodes(); !slices.Equal(destroyed, []string{old}) {
				return fmt.Errorf("machines that left: %v", destroyed)
			}

			return nil
		})
		f.waitShows("v1.36.1 in Omni", "ocl", "c", "{.status.omni.kubernetesVersion}", "v1.36.1")
	})

	t.Run("deleted while held", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy("  hold: true"))
		f.upgradeHeld(v1alpha1.ReasonPolicyOnHold)
		f.run("delete", "ocl", "c", "--timeout=60s")

		if f.view("c").Exists {
			t.Error("a deletion waits for a rollout")
		}
	})

	t.Run("policy deleted with confirmation", func(t *testing.T) {
		t.Parallel()

		f := newFleet(t)
		f.apply(rolloutPolicy("  hold: true"))
		f.upgradeHeld(v1alpha1.ReasonPolicyOnHold)
		f.waitShows("the policy to count it", "orp", "fleet", "{.status.held}", "1")

		if out, err := f.try("delete", "orp", "fleet"); err == nil || !strings.Contains(err.Error(), "confirm-deletion=fleet") {
			t.Errorf("%s %v", out, err)
		}

		f.nothingWritten()
		f.run("annotate", "orp", "fleet", "omni.texashpc.com/confirm-deletion=fleet")
		f.run("delete", "orp", "fleet")
		f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")

		if got := f.clusterWrites(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("updates of the Cluster: %v", got)
		}
	})
}
