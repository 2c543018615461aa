package omnicluster

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// mark sets the hub in the mark of the cluster in Omni; empty makes it an old mark.
func (b *bench) mark(hub string) {
	b.t.Helper()

	err := omnisim.AnnotateCluster(b.t.Context(), b.omni.State(), benchCluster, v1alpha1.MarkHub, hub)
	if hub == "" {
		err = omnisim.RemoveAnnotation(b.t.Context(), b.omni.State(), benchCluster, v1alpha1.MarkHub)
	}

	if err != nil {
		b.t.Fatal(err)
	}
}

// marked waits until the controller's copy shows that mark.
func (b *bench) marked(hub string) {
	b.t.Helper()
	b.mark(hub)
	b.eventually("the mark in the copy", func() string {
		lease, open := b.pool.Get("uid-connection")
		if !open {
			return "no session"
		}
		defer lease.Release()

		live, err := omni.Inspect(b.t.Context(), lease.Copy(), benchCluster, markKeys())
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
func (b *bench) writesSince(before int) []string {
	var lines []string
	for _, write := range b.omni.Writes()[before:] {
		lines = append(lines, write.Verb+" "+write.Type+" "+write.ID)
	}

	return lines
}

// An old mark is completed by one write, once.
func TestOldMarkIsCompleted(t *testing.T) {
	b := running(t)
	b.marked("")

	before := b.remoteWrites()
	b.eventually("the mark", func() string {
		b.run()

		if got := b.view().Annotations[v1alpha1.MarkHub]; got != benchHub {
			return "it is " + got
		}

		return ""
	})
	b.quiet()

	if got := b.writesSince(before); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev demo"}) {
		t.Errorf("Omni took %q", got)
	}

	if b.hasEvent("TakenOver") {
		t.Errorf("events %q", b.seen)
	}
}

// What is only looked at keeps its old mark, and nobody has to know.
func TestOldMarkOfAClusterThatIsOnlyLookedAt(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.OmniCluster){
		"suspended": func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true },
		"observed":  func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
	} {
		t.Run(name, func(t *testing.T) {
			b := running(t)
			b.edit(edit)
			b.run()
			b.marked("")

			before := b.remoteWrites()

			for range 3 {
				b.run()
			}

			if b.remoteWrites() != before || b.view().Annotations[v1alpha1.MarkHub] != "" {
				t.Errorf("Omni took %q", b.writesSince(before))
			}

			if plan := b.get().Status.Plan; plan == nil || plan.Updates != 0 {
				t.Errorf("status.plan %+v", plan)
			}
		})
	}
}

// Objects that were copied from another hub: nothing is written, and their deletion destroys nothing.
func TestAnotherHubsClusterIsNotTouched(t *testing.T) {
	for name, orphan := range map[string]bool{"deleted": false, "orphaned": true} {
		t.Run(name, func(t *testing.T) {
			b := running(t)
			b.marked("hub-2")

			before := b.remoteWrites()

			b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"tier": "copy"} })
			b.delete(newWorkers("w", machineClass, 2))

			cluster := b.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
			says(t, message(cluster, "Stalled"), "hub-2", "hub-1", v1alpha1.AnnotationPreviousHub, `OmniConnection "omni"`)
			b.advance(time.Hour)
			b.quiet()

			if orphan {
				b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
			}

			b.delete(newCluster())
			b.untilGone()

			view := b.view()
			if b.remoteWrites() != before || !view.Exists || view.Annotations[v1alpha1.MarkHub] != "hub-2" || view.Annotations[v1alpha1.MarkOwnerUID] == "" {
				t.Errorf("Omni took %q, and has %+v", b.writesSince(before), view)
			}

			if !orphan && !b.hasEvent("Released", "hub-2", "left alone") {
				t.Errorf("events %q", b.seen)
			}
		})
	}
}

// The first hub is gone: the connection names it, and its clusters are ours by one write.
func TestTakenOverFromThePreviousHub(t *testing.T) {
	b := running(t)
	b.marked("hub-2")
	b.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")

	before := b.remoteWrites()
	change(b, "omni", &v1alpha1.OmniConnection{}, func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: "hub-2"}
	})
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()

	if got := b.writesSince(before); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev demo"}) || b.view().Annotations[v1alpha1.MarkHub] != benchHub {
		t.Errorf("Omni took %q", got)
	}

	if !b.hasEvent("TakenOver", "hub-2", "demo") {
		t.Errorf("events %q", b.seen)
	}

	// The other hub, which was not gone after all, has the same annotation from the same files.
	b.marked("hub-3")
	b.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
	b.quiet()
}

// The annotation that names this hub itself, as it does on the other hub, takes nothing over.
func TestThePreviousHubDoesNotTakeBack(t *testing.T) {
	b := running(t)
	change(b, "omni", &v1alpha1.OmniConnection{}, func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: benchHub}
	})
	b.marked("hub-2")
	b.until("Stalled", metav1.ConditionTrue, "OwnedByOtherHub")
	b.quiet()

	if b.view().Annotations[v1alpha1.MarkHub] != "hub-2" {
		t.Error("it was taken back")
	}
}
