package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	olderTalos = "v1.12.8"
	newerTalos = "v1.13.3"

	// newerExtension exists for newerTalos, not for olderTalos.
	newerExtension = "siderolabs/util-linux-tools"
)

// onTalos is a cluster manifest at a version of Talos.
func onTalos(version string) string {
	return strings.Replace(tiered("c", "x", "v1.35.1"), "v1.13.3", version, 1)
}

// newOlderFleet is a fleet with a policy and one cluster of olderTalos, whose machine has booted that version; the pool's
// machines have booted a newer one.
func newOlderFleet(t *testing.T) *fleet {
	t.Helper()

	catalogue := omnisim.DefaultCatalogue()
	catalogue.Since = map[string]string{newerExtension: strings.TrimPrefix(newerTalos, "v")}

	f := fleetWith(newSpace(t), omnisim.Options{Phase: phase, Catalogue: &catalogue})
	f.apply(fmt.Sprintf(oneByOne, true), onTalos(olderTalos), controlPlaneManifest("c-cp", "c", f.bootedOlder()))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.omni.ForgetRequests()

	return f
}

// bootedOlder connects a machine with olderTalos on its disk, so that the cluster accepts it before and after the upgrade.
func (f *fleet) bootedOlder() string {
	f.t.Helper()

	id, err := f.omni.AddMachine(omnisim.Machine{TalosVersion: olderTalos, Installed: true})
	if err != nil {
		f.t.Fatal(err)
	}

	return id
}

// raiseTalos asks for newerTalos, and waits until that is held.
func (f *fleet) raiseTalos() {
	f.t.Helper()
	f.apply(onTalos(newerTalos))
	f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)
}

// letGo ends the policy's hold, and waits until the cluster's turn is over.
func (f *fleet) letGo() {
	f.t.Helper()
	f.apply(fmt.Sprintf(oneByOne, false))
	f.waitShows("the turn to be over", "ocl", "c", "{.status.rollout.last.result}", "Done")
	f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
}

// names returns an error if a message lacks one of the words.
func names(message string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return fmt.Errorf("%q is not in the message %q", word, message)
		}
	}

	return nil
}

// Accidents with a version of Talos that is held.
func TestRolloutHazardTalos(t *testing.T) {
	t.Parallel()

	// The pool's machines have booted the newer Talos already, as the machines do that a provisioner makes from Git.
	t.Run("class of machines that boot the held version", func(t *testing.T) {
		t.Parallel()

		f := newOlderFleet(t)
		f.raiseTalos()
		f.apply(workersManifest("c-w", "c", classOf(pool, 2)))

		f.wait("the set to name both versions", func() error {
			message, err := f.condition("ow", "c-w", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMachinesNotReady)

			return errors.Join(err, names(message, `the cluster runs Talos v1.12.8, and v1.13.3 is held by OmniRolloutPolicy "fleet"`))
		})

		// The cluster cannot run well without the change that waits until it does. Its message has the remedy.
		f.apply(fmt.Sprintf(oneByOne, false))

		f.says("c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonClusterNotReady, "kubectl omni override c -n "+f.space.name+" --reason <why>")

		if got := f.clusterWrites(); len(got) > 0 || f.view("c").Machines["c-c-w"] > 0 {
			t.Errorf("updates of the Cluster: %v, machines: %v", got, f.view("c").Machines)
		}

		if output, err := f.plugin("", "override", "c", "--yes", "--hash", f.run("get", "ocl", "c", "-o", "jsonpath={.status.rollout.hash}"), "--reason", "its new machines need it"); err != nil {
			t.Fatal(output, err)
		}

		f.waitMachines("c", "c-w", 2)
		f.waitCondition("ow", "c-w", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.waitShows("the turn to be over", "ocl", "c", "{.status.rollout.last.result}", "Done")
	})

	// Omni refuses a machine that is listed. The other new set is made.
	t.Run("listed machine that boots the held version", func(t *testing.T) {
		t.Parallel()

		f := newOlderFleet(t)
		f.raiseTalos()
		f.apply(workersManifest("c-w", "c", "machines: ["+f.machines[1]+"]"),
			workersManifest("c-old", "c", "machines: ["+f.bootedOlder()+"]"))
		f.waitMachines("c", "c-old", 1)
		f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRefused)

		message := f.waitCondition("ow", "c-w", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRefused)
		if err := names(message, "1.13.5 -> 1.12.8", `the cluster runs Talos v1.12.8, and v1.13.3 is held by OmniRolloutPolicy "fleet"`); err != nil {
			t.Error(err)
		}

		f.letGo()
		f.waitMachines("c", "c-w", 1)
	})

	// Omni refuses the extensions of the new set. What else the new objects ask for is made.
	t.Run("new set that needs the held version", func(t *testing.T) {
		t.Parallel()

		f := newOlderFleet(t)
		f.raiseTalos()
		f.apply(workersManifest("c-w", "c", "machines: ["+f.bootedOlder()+"]\n  systemExtensions: ["+newerExtension+"]"),
			workersManifest("c-old", "c", "machines: ["+f.bootedOlder()+"]"))
		f.waitMachines("c", "c-old", 1)

		message := f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRefused)
		if err := names(message, `OmniWorkers "c-w"`, newerExtension, `not available for Talos version "1.12.8"`); err != nil {
			t.Error(err)
		}

		f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)

		if got := f.clusterWrites(); len(got) > 0 {
			t.Errorf("updates of the Cluster: %v", got)
		}

		f.letGo()
		f.waitCondition("ow", "c-w", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})

	// The version is in Omni, but one machine does not take it: the turn goes on until its deadline, and then has failed.
	t.Run("locked machine", func(t *testing.T) {
		t.Parallel()

		f := newOlderFleet(t)
		machine := f.bootedOlder()
		f.apply(workersManifest("c-w", "c", "machines: ["+machine+"]"))
		f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.waitMachines("c", "c-w", 1)
		f.lockMachine(machine)
		f.raiseTalos()
		f.apply(fmt.Sprintf(oneByOne, false))
		f.waitShows("the set to name the lock", "ocl", "c", `{.status.omni.machineSets[?(@.name=="c-w")].lockedUpdates}`, "1")

		// Another cluster has to wait as long as the limit is taken.
		f.apply(tiered("d", "x", "v1.35.1"), controlPlaneManifest("d-cp", "d", f.machines[0]))
		f.waitCondition("ocl", "d", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.apply(tiered("d", "x", "v1.36.1"))
		f.waitCondition("ocl", "d", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForTurn)
		f.waitShows("the turn to go on", "ocl", "c", "{.status.rollout.state}", "Admitted")

		// As if it had begun before the deadline, which is two hours.
		late := time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)
		f.run("patch", "ocl", "c", "--subresource=status", "--type=merge", "-p", `{"status":{"rollout":{"admittedSince":"`+late+`"}}}`)
		f.waitCondition("orp", "fleet", v1alpha1.ConditionRolloutStopped, metav1.ConditionTrue, v1alpha1.ReasonTooManyFailed)
		f.waitShows("the turn to have failed", "ocl", "c", "{.status.rollout.state}/{.status.rollout.last.result}", "Failed/Failed")
		f.waitCondition("ocl", "d", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonRolloutStopped)

		if got := f.clusterWrites(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("updates of Clusters: %v", got)
		}

		// Somebody takes the lock off; the cluster gets well, and the rollout goes on.
		f.unlockMachine(machine)
		f.waitShows("d to have its version", "ocl", "d", "{.status.rollout.last.result}", "Done")
	})
}
