package omnisim_test

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestReportRequested(t *testing.T) {
	sim, err := omnisim.Start(omnisim.Options{Phase: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()

	if err := sim.ReportRequested("nobody", 7); err == nil {
		t.Error("a cluster that does not exist was changed")
	}

	if err := omnisim.CreateForeignCluster(t.Context(), sim.State(), "shop", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	ctx := await.Context(t)

	if _, err := sim.State().WatchFor(ctx, omni.NewClusterStatus("shop").Metadata(), state.WithEventTypes(state.Created, state.Updated)); err != nil {
		t.Fatal(err)
	}

	// The engine may still be busy with the new cluster, and restore the true number.
	sim.Pause()

	if err := sim.ReportRequested("shop", 7); err != nil {
		t.Fatal(err)
	}

	status, err := safe.StateGetByID[*omni.ClusterStatus](ctx, sim.State(), "shop")
	if err != nil {
		t.Fatal(err)
	}

	if got := status.TypedSpec().Value.GetMachines().GetRequested(); got != 7 {
		t.Errorf("%d machines are shown as requested, want 7", got)
	}
}
