package omnicluster

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
)

// A deletion with destroyMachines removes dead machines before it begins with the cluster. A cluster that is kept until
// then has everything that its living machines run with, and whoever keeps it is told which machines it loses.
func TestKeptWhileDeadMachinesGo(t *testing.T) {
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
	f.untilGone()

	if found, err := st.Get(t.Context(), extensions.Metadata()); err != nil || found.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the extensions: %v, %v", found, err)
	}

	if !f.view().Exists || !f.hasEvent("Released", "stays in Omni, without this object's mark", "leave it all the same", dead) {
		t.Errorf("events %q", f.events.All())
	}
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
