package e2e

import (
	"fmt"
	"testing"
	"time"
)

// A prune of a whole fleet takes one kind after the other, as Flux does, so that more than the settle time can lie between
// the workers of a cluster and its control plane. Nothing of a cluster is destroyed by that.
func TestPruneInSteps(t *testing.T) {
	t.Parallel()

	const others = 6

	f := newFleet(t)
	f.cluster("pruned")

	for i := range others {
		f.put(workersManifest(fmt.Sprintf("other-%d", i), "absent", classOf(pool, 1)))
	}

	f.remove("ow", "pruned-w")

	for i := range others {
		time.Sleep(settleTime / 2)
		f.remove("ow", fmt.Sprintf("other-%d", i))
	}

	f.remove("ocp", "pruned-cp")
	time.Sleep(2 * settleTime)

	if got := f.view("pruned").Machines["pruned-pruned-w"]; got != 2 {
		t.Errorf("%d of 2 workers are left", got)
	}
}
