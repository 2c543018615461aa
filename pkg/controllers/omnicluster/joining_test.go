package omnicluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// joinSettleTime is how long the documents must be unchanged in these tests before a machine joins.
const joinSettleTime = 2 * time.Second

// joinsWhenStill has the machines of a fixture wait for the documents of their cluster.
func (f *fixture) joinsWhenStill() *fixture {
	f.reconciler.options.JoinSettleTime = joinSettleTime

	return f
}

// wantCondition checks a condition and words of its message, which it returns.
func (f *fixture) wantCondition(condition string, status metav1.ConditionStatus, reason string, words ...string) string {
	f.t.Helper()

	found := apimeta.FindStatusCondition(f.get().Status.Conditions, condition)
	if found == nil || found.Status != status || found.Reason != reason {
		f.t.Fatalf("want %s=%s %s: %v", condition, status, reason, shown(f.get()))
	}

	for _, word := range words {
		if !strings.Contains(found.Message, word) {
			f.t.Errorf("no %q in %q", word, found.Message)
		}
	}

	return found.Message
}

// created returns what was created of a machine in Omni, in order, each type once.
func (f *fixture) created(machine string) []string {
	var types []string

	for _, write := range f.omni.Writes() {
		if kind := strings.TrimSuffix(write.Type, ".omni.sidero.dev"); write.Verb == "Create" && strings.Contains(write.ID, machine) && !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}

	return types
}

// settingsFirst is the order in which the parts of a machine have to be created.
func settingsFirst() []string {
	return []string{"ExtensionsConfigurations", "ConfigPatches", "KernelArgs", "MachineSetNodes"}
}

// The documents of one apply arrive one after the other, in any order, and the controller looks at the cluster in between.
func TestMachineJoinsAfterItsSettings(t *testing.T) {
	type documents struct{ cluster, controlPlane, workers, machine client.Object }

	for name, order := range map[string]func(documents) []client.Object{
		"as in a file": func(d documents) []client.Object {
			return []client.Object{d.cluster, d.controlPlane, d.workers, d.machine}
		},
		"sorted by kind": func(d documents) []client.Object {
			return []client.Object{d.cluster, d.controlPlane, d.machine, d.workers}
		},
		"the cluster last": func(d documents) []client.Object {
			return []client.Object{d.workers, d.machine, d.controlPlane, d.cluster}
		},
		"the control plane last": func(d documents) []client.Object {
			return []client.Object{d.machine, d.cluster, d.workers, d.controlPlane}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).joinsWhenStill()
			worker := f.machines[1]

			for _, object := range order(documents{
				newCluster(), newControlPlane("cp", f.machines[0]), listing("w", worker), newMachineWithSettings(worker),
			}) {
				f.create(object)
				f.run()
				f.advance(joinSettleTime - time.Millisecond)
				f.run()
			}

			said := f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", worker, "at the latest")
			f.quiet() // the message has times, and stays the same
			f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", said)

			if made := f.created(worker); slices.Contains(made, "MachineSetNodes") {
				t.Errorf("the machine joined before the documents were still: %v", made)
			}

			if due := f.run().RequeueAfter; due > time.Second {
				t.Errorf("the next run is in %s", due)
			}

			f.advance(time.Millisecond)
			f.run()

			if diff := cmp.Diff(settingsFirst(), f.created(worker)); diff != "" {
				t.Errorf("created in this order (-want +got):\n%s", diff)
			}

			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

// A machine joins a set of a cluster that runs, and its settings come in a document of its own.
func TestMachineOfRunningClusterJoinsAfterItsSettings(t *testing.T) {
	f := newFixture(t, newCluster()).joinsWhenStill()
	f.create(newControlPlane("cp", f.machines[0]), listing("w", f.machines[1]))
	f.run()
	f.advance(joinSettleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	// Of what runs nothing waits, whatever changes, and whoever looks.
	f.restart()
	f.joinsWhenStill()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	list := func(machines ...string) {
		change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = machines })
	}
	list(f.machines[1], f.machines[2])
	f.run()
	f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", f.machines[2])

	// The controller is replaced meanwhile: what was to be seen of the documents before is not known.
	f.advance(joinSettleTime / 2)
	f.restart()
	f.joinsWhenStill()
	f.run()
	f.advance(joinSettleTime / 2)
	f.create(newMachineWithSettings(f.machines[2]))
	f.run()
	f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", f.machines[2])
	f.advance(joinSettleTime)
	f.run()

	if diff := cmp.Diff(settingsFirst(), f.created(f.machines[2])); diff != "" {
		t.Errorf("created in this order (-want +got):\n%s", diff)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")

	// A machine that somebody took out of its set in Omni comes back at once: the documents have been the same for long.
	f.advance(time.Hour)
	f.run()
	f.omni.ForgetRequests()

	node := omnires.NewMachineSetNode(f.machines[2], omnires.NewMachineSet(""))
	if err := f.omni.State().TeardownAndDestroy(t.Context(), node.Metadata()); err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	f.eventually("the machine in its set", func() string {
		f.run()

		if !slices.Contains(f.created(f.machines[2]), "MachineSetNodes") {
			return "not created again"
		}

		return ""
	})
}

// Documents that change all the time keep a machine waiting for half a minute, and no longer.
func TestDocumentsThatGoOnChanging(t *testing.T) {
	f := newFixture(t, newCluster()).joinsWhenStill()
	f.create(newControlPlane("cp", f.machines[0]))

	joined := func() bool { return slices.Contains(f.created(f.machines[0]), "MachineSetNodes") }
	waited := 0

	for ; waited < 60 && !joined(); waited++ {
		f.edit(func(o *v1alpha1.OmniCluster) {
			o.Spec.Features.EnableWorkloadProxy = !o.Spec.Features.EnableWorkloadProxy
		})
		f.run()
		f.run() // the first may only have stored the status
		f.advance(time.Second)
	}

	if waited != 31 {
		t.Errorf("the machine joined in second %d, want 30", waited-1)
	}
}

// Machines of a class have no documents of their own. Those of the set and of the cluster may be of the same apply.
func TestClassSetWaitsForDocuments(t *testing.T) {
	f := newFixture(t, newCluster()).joinsWhenStill()
	f.create(newControlPlane("cp", f.machines[0]))
	f.run()
	f.advance(joinSettleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	f.create(newWorkers("w", machineClass, 2))
	f.run()
	f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", "demo-w")
	f.advance(joinSettleTime)
	f.run()
	f.until("Ready", metav1.ConditionTrue, "Running")
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 3 })
	f.run()
	f.wantCondition("Synced", metav1.ConditionFalse, "WaitingForDocuments", "demo-w")
	f.advance(joinSettleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	// Fewer machines wait for the settle time alone.
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 1 })
	f.run()
	f.wantCondition("Synced", metav1.ConditionFalse, "WaitingToSettle", "demo-w")
}
