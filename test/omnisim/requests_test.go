package omnisim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// requestsOf returns what Omni says of the requests of a machine set, sorted: stage, whether the machine is in use, status.
func requestsOf(t *testing.T, st state.State, set string) []string {
	t.Helper()

	list, err := safe.StateListAll[*omni.ClusterMachineRequestStatus](deadline(t), st, state.WithLabelQuery(resource.LabelEqual(omni.LabelMachineSet, set)))
	if err != nil {
		t.Fatal(err)
	}

	var lines []string

	for request := range list.All() {
		spec := request.TypedSpec().Value
		line := spec.GetStage().String() + ": " + spec.GetStatus()

		if _, inUse := request.Metadata().Labels().Get(omni.LabelMachineRequestInUse); inUse {
			line = "used"
		}

		if md := request.Metadata(); md.Owner() != "ClusterMachineRequestStatusController" || !strings.HasPrefix(md.ID(), set+"-") || spec.GetProviderId() != "vms" {
			t.Errorf("%s has owner %q and provider %q", md.ID(), md.Owner(), spec.GetProviderId())
		}

		lines = append(lines, line)
	}

	slices.Sort(lines)

	return lines
}

// untilRequests advances until Omni says something of the requests of a set.
func untilRequests(t *testing.T, sim *omnisim.Server, st state.State, set string, want ...string) {
	t.Helper()

	stepUntil(t, sim, strings.Join(want, ", "), func() bool { return slices.Equal(requestsOf(t, st, set), want) })
}

func machineCount(t *testing.T, st state.State) int {
	t.Helper()

	list, err := safe.StateListAll[*omni.MachineStatus](deadline(t), st)
	if err != nil {
		t.Fatal(err)
	}

	return list.Len()
}

// TestProvisionedClass checks that the machines of a class with a provider are made one by one for each set, come, and go.
func TestProvisionedClass(t *testing.T) {
	sim := start(t, omnisim.Options{Manual: true})
	ctx, st := deadline(t), operator(t, sim)

	if err := sim.AddProvisionedClass("made", "vms"); err != nil {
		t.Fatal(err)
	}

	const pending, failed = "PENDING: Waiting for the infra provider to start provision", "FAILED: Provision Failed: no space"

	sim.FailProvisioning("beta", "workers", "no space")
	apply(ctx, t, st, classed("beta", "made", "2"))

	// Omni makes requests at once; the provider needs time.
	for !slices.Equal(requestsOf(t, st, "beta-workers"), []string{pending, pending}) {
		if time.Sleep(time.Millisecond); ctx.Err() != nil {
			t.Fatal("Omni makes no requests")
		}
	}

	untilRequests(t, sim, st, "beta-workers", failed, failed)
	untilRequests(t, sim, st, "beta-control-planes", "used")

	sim.FailProvisioning("beta", "workers", "")
	untilRequests(t, sim, st, "beta-workers", `PROVISIONING: Running Step: "createMachine" (1/1)`, `PROVISIONING: Running Step: "createMachine" (1/1)`)
	untilRequests(t, sim, st, "beta-workers", "PROVISIONED: Waiting for the machine to join Omni", "PROVISIONED: Waiting for the machine to join Omni")
	untilRequests(t, sim, st, "beta-workers", "used", "used")

	if found := machineCount(t, st); found != 3 {
		t.Errorf("%d machines", found)
	}

	apply(ctx, t, st, classed("beta", "made", "1"))
	untilRequests(t, sim, st, "beta-workers", "used")
	stepUntil(t, sim, "two machines", func() bool { return machineCount(t, st) == 2 })

	if _, err := st.Teardown(ctx, omni.NewCluster("beta").Metadata()); err != nil {
		t.Fatal(err)
	}

	stepUntil(t, sim, "gone", func() bool {
		_, err := st.Get(ctx, omni.NewCluster("beta").Metadata())

		return state.IsNotFoundError(err) && machineCount(t, st) == 0
	})
	untilRequests(t, sim, st, "beta-workers")
}
