package omnicluster

import (
	"slices"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// mark sets the hub in the mark of the cluster in Omni; empty makes it an old mark.
func (f *fixture) mark(hub string) {
	f.t.Helper()

	err := omnisim.AnnotateCluster(f.t.Context(), f.omni.State(), testCluster, v1alpha1.MarkHub, hub)
	if hub == "" {
		err = omnisim.RemoveAnnotation(f.t.Context(), f.omni.State(), testCluster, v1alpha1.MarkHub)
	}

	if err != nil {
		f.t.Fatal(err)
	}
}

// marked waits until the controller's copy shows that mark.
func (f *fixture) marked(hub string) {
	f.t.Helper()
	f.mark(hub)
	f.eventually("the mark in the copy", func() string {
		lease, open := f.pool.Get("uid-connection")
		if !open {
			return "no session"
		}
		defer lease.Release()

		live, err := omni.Inspect(f.t.Context(), lease.Copy(), testCluster)
		if err != nil {
			return err.Error()
		}

		if live.Marks.Hub != hub {
			return "it is " + live.Marks.Hub
		}

		return ""
	})
}

// writesSince are what Omni took since then, each as verb, type and ID.
func (f *fixture) writesSince(before int) []string {
	var lines []string
	for _, write := range f.omni.Writes()[before:] {
		lines = append(lines, write.Verb+" "+write.Type+" "+write.ID)
	}

	return lines
}

// An old mark is completed by one write, once.
func TestOldMarkIsCompleted(t *testing.T) {
	f := running(t)
	f.marked("")

	before := f.remoteWrites()
	f.eventually("the mark", func() string {
		f.run()

		if got := f.view().Annotations[v1alpha1.MarkHub]; got != testHub {
			return "it is " + got
		}

		return ""
	})
	f.quiet()

	if got := f.writesSince(before); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev demo"}) {
		t.Errorf("Omni took %q", got)
	}

	if f.hasEvent("TakenOver") {
		t.Errorf("events %q", f.events.All())
	}
}

// What is only looked at keeps its old mark, and nobody has to know.
func TestOldMarkOfAClusterThatIsOnlyLookedAt(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.OmniCluster){
		"suspended": func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true },
		"observed":  func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.edit(edit)
			f.run()
			f.marked("")

			before := f.remoteWrites()

			for range 3 {
				f.run()
			}

			if f.remoteWrites() != before || f.view().Annotations[v1alpha1.MarkHub] != "" {
				t.Errorf("Omni took %q", f.writesSince(before))
			}

			if plan := f.get().Status.Plan; plan == nil || plan.Updates != 0 {
				t.Errorf("status.plan %+v", plan)
			}
		})
	}
}

// Objects that were copied from another hub: nothing is written, and their deletion destroys nothing.
func TestAnotherHubsClusterIsNotTouched(t *testing.T) {
	for name, orphan := range map[string]bool{"deleted": false, "orphaned": true} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.marked("hub-2")

			before := f.remoteWrites()

			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"tier": "copy"} })
			f.delete(newWorkers("w", machineClass, 2))

			cluster := f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
			says(t, message(cluster, "Stalled"), "hub-2", "hub-1", v1alpha1.AnnotationPreviousHub, `OmniConnection "omni"`)
			f.advance(time.Hour)
			f.quiet()

			if orphan {
				f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
			}

			f.delete(newCluster())
			f.untilGone()

			view := f.view()
			if f.remoteWrites() != before || !view.Exists || view.Annotations[v1alpha1.MarkHub] != "hub-2" || view.Annotations[v1alpha1.MarkOwnerUID] == "" {
				t.Errorf("Omni took %q, and has %+v", f.writesSince(before), view)
			}

			if !orphan && !f.hasEvent("Released", "hub-2", "left alone") {
				t.Errorf("events %q", f.events.All())
			}
		})
	}
}

// That a cluster is another hub's is known until Omni says otherwise: what suspends or deletes the object, or a connection that
// does not work, changes nothing of it. Objects in the workload cluster go by it.
func TestAnotherHubsClusterIsKnownWithoutOmni(t *testing.T) {
	f := running(t)
	f.marked("hub-2")
	f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")

	known := func(when string) {
		t.Helper()

		if got := f.get().Status.OtherHub; got != "hub-2" {
			t.Errorf("%s: status.otherHub %q", when, got)
		}
	}
	known("seen")

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })
	f.run()
	known("suspended")

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.pool.Forget("uid-connection")
	f.run()

	if apimeta.IsStatusConditionTrue(f.get().Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("it is Stalled; what is known is to be kept without that")
	}

	known("without Omni")

	f.delete(newCluster())
	f.run()
	known("waiting for Omni, to be deleted")
}

// Objects that were restored from a snapshot of another hub have the status that they had there. Whose the cluster is counts as seen
// here when this hub has read it in Omni, and not before.
func TestWhichHubHasSeenTheCluster(t *testing.T) {
	f := running(t)
	if got := f.get().Status.HubID; got != testHub {
		t.Fatalf("status.hubID %q", got)
	}

	restored := f.get()
	restored.Status.HubID = "hub-2"

	if err := f.client.Status().Update(t.Context(), restored); err != nil {
		t.Fatal(err)
	}

	f.marked("hub-2")
	f.loseOmni(false)
	f.restart()
	f.advance(time.Minute)

	cluster := f.until("ConnectionReady", metav1.ConditionFalse, "MirrorNotSynced")
	if cluster.Status.HubID != "hub-2" || cluster.Status.OtherHub != "" {
		t.Errorf("without Omni: status.hubID %q, status.otherHub %q", cluster.Status.HubID, cluster.Status.OtherHub)
	}

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	cluster = f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
	if cluster.Status.HubID != testHub || cluster.Status.OtherHub != "hub-2" {
		t.Errorf("status.hubID %q, status.otherHub %q", cluster.Status.HubID, cluster.Status.OtherHub)
	}

	f.quiet()
}

// What is noted of a cluster for who works in it is what this process sees in Omni: nothing before it has looked, nor while Omni cannot
// be read, and not that it is another hub's.
func TestWhatThisProcessSees(t *testing.T) {
	f := running(t)
	f.restart()

	owners := hubs.NewOwners()
	f.reconciler.options.Owners = owners
	f.loop = f.newLoop()

	sees := func(when string, want bool) {
		t.Helper()

		if got := owners.Confirms(f.get(), hubs.Waiter{}); got != want {
			t.Errorf("%s: %t, want %t", when, got, want)
		}
	}
	sees("before the first look", false)

	before := f.get().ResourceVersion
	f.run()
	sees("after it", true)

	if f.get().ResourceVersion != before {
		t.Error("the status was written")
	}

	// Other runs have all slots: nothing was learned.
	release := f.takeSlots()
	f.run()
	sees("without a slot", true)
	release()

	f.loseOmni(false)
	f.advance(time.Hour)
	f.until("ConnectionReady", metav1.ConditionFalse, "MirrorNotSynced")
	sees("Omni is away", false)

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")
	sees("Omni is back", true)

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })
	f.run()
	sees("suspended", true)

	f.pool.Forget("uid-connection")
	f.run()
	sees("without a session", false)
	f.connect()
	f.run()
	sees("with a new one", true)

	f.marked("hub-2")
	f.run()
	sees("another hub's", false)
}

// The first hub is gone: the connection names it, and its clusters are ours by one write.
func TestTakenOverFromThePreviousHub(t *testing.T) {
	f := running(t)
	f.marked("hub-2")
	f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")

	before := f.remoteWrites()
	change(f, "omni", &v1alpha1.OmniConnection{}, func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: "hub-2"}
	})
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	if got := f.writesSince(before); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev demo"}) || f.view().Annotations[v1alpha1.MarkHub] != testHub {
		t.Errorf("Omni took %q", got)
	}

	if !f.hasEvent("TakenOver", "hub-2", "demo") {
		t.Errorf("events %q", f.events.All())
	}

	if got := f.get().Status.OtherHub; got != "" {
		t.Errorf("status.otherHub %q", got)
	}

	// The other hub, which was not gone after all, has the same annotation from the same files.
	f.marked("hub-3")
	f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
	f.quiet()
}

// The annotation that names this hub itself, as it does on the other hub, takes nothing over.
func TestThePreviousHubDoesNotTakeBack(t *testing.T) {
	f := running(t)
	change(f, "omni", &v1alpha1.OmniConnection{}, func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: testHub}
	})
	f.marked("hub-2")
	f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
	f.quiet()

	if f.view().Annotations[v1alpha1.MarkHub] != "hub-2" {
		t.Error("it was taken back")
	}
}

// A second hub that is built from the same Git as the first has objects with other UIDs and adopt: true. It leaves the
// clusters alone until its connection says that the first hub is gone, and so does the deletion of its objects.
func TestAdoptIsNotEnoughForAnotherHubsCluster(t *testing.T) {
	for name, gone := range map[string]bool{"the first hub runs": false, "the first hub is gone": true} {
		t.Run(name, func(t *testing.T) {
			f := handmade(t, nil)
			for key, value := range map[string]string{
				v1alpha1.MarkOwnerUID: "uid-other", v1alpha1.MarkOwnerNamespace: "team", v1alpha1.MarkOwnerName: testCluster,
			} {
				if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), testCluster, key, value); err != nil {
					t.Fatal(err)
				}
			}

			f.marked("hub-2")

			before := f.remoteWrites()
			cluster := f.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
			says(t, message(cluster, "Stalled"), "uid-other", "hub-2", testHub, v1alpha1.AnnotationPreviousHub, `OmniConnection "omni"`)
			f.advance(time.Hour)
			f.restart()
			f.quiet()

			if gone {
				change(f, "omni", &v1alpha1.OmniConnection{}, func(o *v1alpha1.OmniConnection) {
					o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: "hub-2"}
				})

				cluster = f.untilKnown()
				if mark := f.view().Annotations; mark[v1alpha1.MarkHub] != testHub || mark[v1alpha1.MarkOwnerUID] != "uid-demo" || !cluster.Status.Adopting {
					t.Errorf("mark %v, status %+v", mark, cluster.Status)
				}

				if !f.hasEvent("Adopted", "from OmniCluster team/demo (UID uid-other, hub hub-2)") {
					t.Errorf("events %q", f.events.All())
				}

				f.wantTornDown()

				return
			}

			f.delete(newCluster())
			f.untilGone()

			view := f.view()
			if f.remoteWrites() != before || !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] != "uid-other" || cluster.Status.Adopting {
				t.Errorf("Omni took %q, and has %+v", f.writesSince(before), view)
			}
		})
	}
}
