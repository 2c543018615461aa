package omnicluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// tries is how often Omni was asked to make a machine set.
func (f *fixture) tries() int {
	return f.omni.Requests()[omnisim.Request{Method: "Create", Type: plan.TypeMachineSet}]
}

// One bad set: the others are made, their documents are applied, and what the status says of both is true.
func TestRefusedSetStopsNothingElse(t *testing.T) {
	good, bad := newWorkers("good", machineClass, 1), newWorkers("bad", "no-such-class", 1)
	f := newFixture(t, newCluster(), bad, good)
	f.create(newControlPlane("cp", f.machines[0]))

	cluster := f.until("Stalled", metav1.ConditionTrue, "Refused")
	f.eventually("the other sets", func() string {
		f.run()

		return cmp.Diff(map[string]int{"demo-control-planes": 1, "demo-good": 1}, f.view().Machines)
	})
	f.quiet()

	says(t, message(f.get(), "Synced"), `OmniWorkers "bad": create MachineSet "demo-bad"`, "no-such-class", "every 5m")

	status := f.get().Status
	applied := []v1alpha1.AppliedMachineSet{{ID: "demo-control-planes", Machines: []string{f.machines[0]}}, {ID: "demo-good", Size: machineClass + "/1", OmniWorkers: "good"}}

	if diff := cmp.Diff(applied, status.AppliedMachineSets); diff != "" {
		t.Errorf("recorded: %s", diff)
	}

	if diff := cmp.Diff(&v1alpha1.AppliedReference{Name: "cp", UID: "uid-cp", Generation: 1}, status.ControlPlaneRef); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]v1alpha1.AppliedReference{{Name: "good", UID: "uid-good", Generation: 1}}, status.WorkersRefs); diff != "" {
		t.Error(diff)
	}

	if status.TemplateHash != "" || len(status.Refusals) != 1 {
		t.Fatalf("%q, %+v", status.TemplateHash, status.Refusals)
	}

	refused := status.Refusals[0]
	says(t, refused.Message, "no-such-class")

	refused.Message = ""
	want := v1alpha1.RefusedChange{
		Action: v1alpha1.ActionCreate, Type: plan.TypeMachineSet, ID: "demo-bad",
		Documents: []v1alpha1.RefusedDocument{{Kind: "OmniWorkers", Name: "bad", UID: "uid-bad", Generation: 1}},
	}

	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}

	if cluster.Status.Plan.Creates != 1 && f.get().Status.Plan.Creates != 1 {
		t.Errorf("plan %+v", f.get().Status.Plan)
	}

	change(f, "bad", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Name = machineClass })

	cluster = f.until("Ready", metav1.ConditionTrue, "Running")
	if cluster.Status.Refusals != nil || len(cluster.Status.WorkersRefs) != 2 || len(cluster.Status.AppliedMachineSets) != 3 {
		t.Errorf("%+v", cluster.Status)
	}

	f.quiet()
}

// However often the cluster is looked at because Omni is at work on the rest of it, the refused part is asked for
// again only after a pause, or when somebody asks for something else.
func TestRefusalIsNotRepeatedAtOnce(t *testing.T) {
	f := newFixture(t, newCluster(), newWorkers("bad", "no-such-class", 1))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Stalled", metav1.ConditionTrue, "Refused")

	expect := func(why string, do func(), want int) {
		t.Helper()

		before := f.tries()

		do()

		for range 5 {
			f.run()
		}

		if got := f.tries() - before; got != want {
			t.Errorf("%s: tried %d times, want %d", why, got, want)
		}
	}

	expect("at once", func() {}, 0)

	if result := f.run(); result.RequeueAfter != 0 && result.RequeueAfter > defaultInterval {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}

	expect("after the pause", func() { f.advance(refusalPause) }, 1)
	expect("on request", func() {
		f.edit(func(o *v1alpha1.OmniCluster) {
			o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		})
	}, 1)
	expect("when the class is there", func() {
		if err := f.omni.AddMachineClass("no-such-class", "pool = a"); err != nil {
			t.Fatal(err)
		}

		f.advance(refusalPause)
	}, 1)
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// Within the pause the next look is at its end, so that a change in Omni that was the remedy is not missed.
func TestRefusalIsTriedAgainAfterThePause(t *testing.T) {
	f := newFixture(t, newCluster(), newWorkers("bad", "no-such-class", 1))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Stalled", metav1.ConditionTrue, "Refused")
	f.advance(refusalPause / 5)
	f.eventually("a look after the rest of the pause", func() string {
		if result := f.run(); result.RequeueAfter != refusalPause-refusalPause/5 {
			return result.RequeueAfter.String()
		}

		return ""
	})
}

// A run may take longer than the rest of the pause. What it did not try again has its own time, then, and not only that
// of the interval.
func TestRefusalIsTriedAgainAfterASlowRun(t *testing.T) {
	f := newFixture(t, newCluster(), newWorkers("bad", "no-such-class", 1))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Stalled", metav1.ConditionTrue, "Refused")

	// The pause ends between two readings of the clock, at another place of the run each time.
	for calls := range 12 {
		f.slow = refusalPause * 2 / time.Duration(2*calls+1)

		for range 12 {
			before := f.tries()

			if result := f.run(); f.tries() == before && (result.RequeueAfter <= 0 || result.RequeueAfter > refusalPause) {
				t.Fatalf("neither tried again nor looked at again soon, but after %s", result.RequeueAfter)
			}
		}
	}
}

// A set that waits to settle, while another one is refused, goes when it has settled.
func TestRefusalDoesNotStopTheSettleTime(t *testing.T) {
	f := newFixture(t, newCluster(), newWorkers("w", machineClass, 1), newWorkers("gone", machineClass, 1))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")

	// A class that is missing is refused for an existing set, too; nothing new is to come in its place.
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Name = "no-such-class" })
	f.delete(newWorkers("gone", machineClass, 1))

	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime + time.Second)
	says(t, message(f.until("Synced", metav1.ConditionFalse, "Refused"), "Synced"), `OmniWorkers "w"`, "no-such-class")
	f.eventually("the end of the other set", func() string {
		f.run()

		return cmp.Diff(map[string]int{"demo-control-planes": 1, "demo-w": 1}, f.view().Machines)
	})
}
