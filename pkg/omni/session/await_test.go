package session

import (
	"errors"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// TestWaitingClusterIsTold checks that ClusterChanged is called for a cluster that waits for another cluster's resource
// when that resource changes, whether or not Omni has the waiting cluster.
func TestWaitingClusterIsTold(t *testing.T) {
	for name, made := range map[string]bool{"not made yet": false, "made already": true} {
		t.Run(name, func(t *testing.T) {
			source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
			set := omnitest.SetNamed("other", "workers")
			omnitest.MustCreate(t, source, omnitest.ClusterNamed("other"), set, omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine1, set), "other"))

			if made {
				omnitest.MustCreate(t, source, omnitest.ClusterNamed("demo"))
			}

			s := newTestSession(t, source, told)

			plans := func(want error) bool {
				_, err := s.Plan(t.Context(), "demo", plantest.Load(t, omnitest.FullTemplate), plan.Options{})

				return errors.Is(err, want)
			}

			if !plans(omni.ErrCollision) {
				t.Fatal("this test wants a collision")
			}

			told.Take()
			omnitest.MustDestroy(t, source, omnires.NewMachineSetNode(omnitest.Machine1, set))
			await.Until(t, "the waiting cluster is told", func() bool { return told.Told("demo") })

			if !plans(nil) {
				t.Error("the machine is free, and there is no plan")
			}

			// The cluster waits no more.
			told.Take()
			omnitest.MustCreate(t, source, omnires.NewClusterStatus("marker"), omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine4, set), "other"))
			await.Until(t, "the marker", func() bool { return told.Told("marker") && told.Told("other") })

			if told.Told("demo") {
				t.Error("told of what it does not wait for")
			}
		})
	}
}

// TestWaitingClusterIsToldOfTheOwner checks that the deletion of the cluster in the message is reported, too, and so
// are changes that a watch shows when it is opened again.
func TestWaitingClusterIsToldOfTheOwner(t *testing.T) {
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("other"), omnitest.Labelled(omnires.NewMachineSet("demo-workers"), "other"))

	s := newTestSession(t, source, told)
	collision := func() string {
		_, err := s.Plan(t.Context(), "demo", plantest.Load(t, omnitest.FullTemplate), plan.Options{})

		return omni.Message(err)
	}

	first := collision()

	told.Take()
	omnitest.MustDestroy(t, source, omnitest.ClusterNamed("other"))
	await.Until(t, "the end of the owner is told", func() bool { return told.Told("demo") })

	if after := collision(); after == first {
		t.Errorf("it still says %q", after)
	}

	told.Take()
	source.LoseWatches(errors.New("lost"))
	omnitest.MustDestroy(t, source, omnires.NewMachineSet("demo-workers"))
	await.Until(t, "what the watch missed is told", func() bool { return told.Told("demo") })
}
