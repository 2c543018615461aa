package omni

import (
	"errors"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Who waits for what another cluster has is told when that changes, whether Omni has the waiting cluster or not.
func TestWaitingClusterIsTold(t *testing.T) {
	for name, made := range map[string]bool{"not made yet": false, "made already": true} {
		t.Run(name, func(t *testing.T) {
			source, told := newFakeOmni(), &recorded{}
			set := setNamed("other", "workers")
			mustCreate(t, source, clusterNamed("other"), set, labelled(omnires.NewMachineSetNode(machine1, set), "other"))

			if made {
				mustCreate(t, source, clusterNamed("demo"))
			}

			s := newTestSession(t, source, told)

			plans := func(want error) bool {
				_, err := s.Plan(t.Context(), "demo", []byte(fullTemplate), PlanOptions{})

				return errors.Is(err, want)
			}

			if !plans(ErrCollision) {
				t.Fatal("this test wants a collision")
			}

			told.take()
			mustDestroy(t, source, omnires.NewMachineSetNode(machine1, set))
			eventually(t, "the waiting cluster is told", func() bool { return told.told("demo") })

			if !plans(nil) {
				t.Error("the machine is free, and there is no plan")
			}

			// It does not wait any more.
			told.take()
			mustCreate(t, source, omnires.NewClusterStatus("marker"), labelled(omnires.NewMachineSetNode(machine4, set), "other"))
			eventually(t, "the marker", func() bool { return told.told("marker") && told.told("other") })

			if told.told("demo") {
				t.Error("told of what it does not wait for")
			}
		})
	}
}

// The end of the cluster that a message names is told, too, and so is what a watch shows when it is opened anew.
func TestWaitingClusterIsToldOfTheOwner(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	mustCreate(t, source, clusterNamed("other"), labelled(omnires.NewMachineSet("demo-workers"), "other"))

	s := newTestSession(t, source, told)
	collision := func() string {
		_, err := s.Plan(t.Context(), "demo", []byte(fullTemplate), PlanOptions{})

		return Message(err)
	}

	first := collision()

	told.take()
	mustDestroy(t, source, clusterNamed("other"))
	eventually(t, "the end of the owner is told", func() bool { return told.told("demo") })

	if after := collision(); after == first {
		t.Errorf("it still says %q", after)
	}

	told.take()
	source.loseWatches(errors.New("lost"))
	mustDestroy(t, source, omnires.NewMachineSet("demo-workers"))
	eventually(t, "what the watch missed is told", func() bool { return told.told("demo") })
}
