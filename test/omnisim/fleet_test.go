package omnisim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestFleet creates and deletes many clusters, and checks that an idle fleet is idle.
func TestFleet(t *testing.T) {
	const size = 40

	sim := start(t, omnisim.Options{Phase: 100 * time.Millisecond, Machines: 2 * size})
	st := operator(t, sim)

	if err := sim.AddMachineClass("any", omni.MachineStatusLabelArch+" = amd64"); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	for i := range size {
		apply(deadline(t), t, st, classed(fmt.Sprintf("fleet-%02d", i), "any", "1"))
	}

	t.Logf("%d clusters synced in %s", size, time.Since(began))

	for i := range size {
		waitFor(deadline(t), t, st, omni.NewClusterStatus(fmt.Sprintf("fleet-%02d", i)), healthy(2))
	}

	t.Logf("all running after %s", time.Since(began))

	waitIdle(t, sim)

	for i := range size {
		destroy(deadline(t), t, st, fmt.Sprintf("fleet-%02d", i))
	}

	for i := range size {
		waitGone(deadline(t), t, st, omni.NewCluster(fmt.Sprintf("fleet-%02d", i)).Metadata())
	}

	t.Logf("all gone after %s", time.Since(began))
}

// waitIdle waits until the engine writes nothing for ten phases. It fails if the engine writes although nothing
// changes.
func waitIdle(t *testing.T, sim *omnisim.Server) {
	t.Helper()

	before := version(t, sim)

	for range 60 {
		time.Sleep(10 * 100 * time.Millisecond)

		after := version(t, sim)
		if after == before {
			return
		}

		before = after
	}

	t.Fatalf("the engine writes although nothing changes: %d versions by now", before)
}

// version returns the sum of the versions of all resources that the engine writes often.
func version(t *testing.T, sim *omnisim.Server) uint64 {
	t.Helper()

	statuses, err := safe.StateListAll[*omni.ClusterStatus](deadline(t), sim.Unchecked())
	if err != nil {
		t.Fatal(err)
	}

	machines, err := safe.StateListAll[*omni.ClusterMachineStatus](deadline(t), sim.Unchecked())
	if err != nil {
		t.Fatal(err)
	}

	var sum uint64
	for status := range statuses.All() {
		sum += status.Metadata().Version().Value()
	}

	for machine := range machines.All() {
		sum += machine.Metadata().Version().Value()
	}

	return sum
}
