package omnicluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// A deletion with destroyMachines removes dead machines before it begins with the cluster. A cluster that is kept until
// then has everything that its living machines run with, and whoever keeps it is told which machines it loses.
func TestKeptWhileDeadMachinesGo(t *testing.T) {
	t.Run("kept", func(t *testing.T) { keptWhileDeadMachinesGo(t, func(*fixture) {}) })
	t.Run("kept, and the answer is lost", func(t *testing.T) { keptWhileDeadMachinesGo(t, (*fixture).loseTheMark) })
}

func keptWhileDeadMachinesGo(t *testing.T, keep func(*fixture)) {
	t.Helper()

	f := running(t)
	dead, st := f.machines[0], f.omni.State()
	extensions := omnitest.Labelled(omnires.NewExtensionsConfiguration("schematic-demo"), "demo")
	omnitest.MustCreate(t, st, extensions)

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.DestroyMachines = true })
	f.untilDisconnected(dead)

	link := siderolink.NewLink(dead, nil).Metadata()
	if err := st.AddFinalizer(t.Context(), link, "a controller of Omni"); err != nil {
		t.Fatal(err)
	}

	f.omni.Pause()
	f.delete(newCluster())
	f.eventually("the request for the link", func() string {
		f.run()

		if found, err := st.Get(t.Context(), link); err != nil || found.Metadata().Phase() == resource.PhaseRunning {
			return "it was not made"
		}

		return ""
	})

	// Omni takes the machine out of its set.
	if _, err := st.Teardown(t.Context(), omnires.NewMachineSetNode(dead, omnires.NewMachineSet("")).Metadata()); err != nil {
		t.Fatal(err)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true} })
	keep(f)
	f.untilGone()

	if found, err := st.Get(t.Context(), extensions.Metadata()); err != nil || found.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the extensions: %v, %v", found, err)
	}

	if !f.view().Exists || !f.hasEvent("Released", "stays in Omni, without this object's mark", "leave it all the same", dead) {
		t.Errorf("events %q", f.events.All())
	}
}

// loseTheMark has Omni take the mark off the cluster without an answer to that, and waits until the local copy shows it.
func (f *fixture) loseTheMark() {
	f.t.Helper()

	var lost atomic.Bool

	f.omni.Inject(omnisim.Fault{
		Method: "Update", Type: omnires.ClusterType, Times: 1, AnswerLost: true, Code: codes.Internal, OnHit: func() { lost.Store(true) },
	})

	lease, _ := f.pool.Get("uid-connection")
	defer lease.Release()

	f.run()
	f.eventually("the cluster without a mark", func() string {
		live, err := omni.Inspect(f.t.Context(), lease.Copy(), testCluster)

		return map[bool]string{false: fmt.Sprintf("lost %v, %+v, %v", lost.Load(), live, err)}[lost.Load() && err == nil && live.Marks.UID == ""]
	})
}

// untilDisconnected kills a machine, and waits until Omni and the local copy count it as disconnected.
func (f *fixture) untilDisconnected(machine string) {
	f.t.Helper()
	f.omni.KillMachine(machine)

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	f.eventually("Omni to count the machine as disconnected", func() string {
		found, err := lease.Copy().Get(f.t.Context(), omnires.NewMachineStatus(machine).Metadata())
		if err != nil {
			return err.Error()
		}

		if _, disconnected := found.Metadata().Labels().Get(omnires.MachineStatusLabelDisconnected); !disconnected {
			return "it does not"
		}

		return ""
	})
}
