package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// phase of the simulators' engines: quick, but slow enough that in-between states are seen.
const phase = 50 * time.Millisecond

// pool is the machine class of every fleet's other six machines.
const pool = "pool-a"

// fleet is a namespace with an Omni of its own and a connection named omni to it.
type fleet struct {
	*space

	omni     *omnisim.Server
	key      string
	machines []string // IDs of connected machines that no class matches
	followed <-chan watch.Event
	ends     time.Time // of the settle time that edits have to be made in
	late     bool      // edits were not over within the settle time: what was seen shows nothing
}

func newFleet(t *testing.T) *fleet {
	t.Helper()

	return newFleetIn(t, "")
}

// newFleetIn is newFleet for a test with several: the suffix tells their namespaces apart.
func newFleetIn(t *testing.T, suffix string) *fleet {
	t.Helper()

	return fleetIn(newSpaceNamed(t, suffix))
}

// fleetIn fills a namespace.
func fleetIn(s *space) *fleet {
	s.t.Helper()

	return fleetWith(s, omnisim.Options{Phase: phase})
}

// fleetWith fills a namespace, with an Omni of one's own.
func fleetWith(s *space, options omnisim.Options) *fleet {
	t := s.t
	t.Helper()

	sim, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	f := &fleet{space: s, omni: sim}
	if f.key, err = sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	if f.machines, err = sim.AddMachines(4); err != nil {
		t.Fatal(err)
	}

	if err := sim.AddMachineClass(pool, "pool = a"); err != nil {
		t.Fatal(err)
	}

	for range 6 {
		if _, err := sim.AddMachine(omnisim.Machine{Labels: map[string]string{"pool": "a"}}); err != nil {
			t.Fatal(err)
		}
	}

	f.apply(secretManifest("key", f.key, sim.Endpoint()), connectionManifest("omni", sim.Endpoint(), "key", string(sim.CAPEM())))

	return f
}

// cluster applies a cluster with one control-plane machine and two workers of a class, and waits
// until it is Ready.
func (f *fleet) cluster(name string, extra ...string) {
	f.t.Helper()
	f.apply(clusterManifest(name, extra...), controlPlaneManifest(name+"-cp", name, f.machines[0]),
		workersManifest(name+"-w", name, classOf(pool, 2)))
	f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// view is what Omni itself says of a cluster.
func (f *fleet) view(name string) omnisim.ClusterView {
	f.t.Helper()

	view, err := f.omni.View(name)
	if err != nil {
		f.t.Fatal(err)
	}

	return view
}

// waitMachines waits until Omni has this many machines in the set.
func (f *fleet) waitMachines(cluster, set string, want int) {
	f.t.Helper()
	f.wait(fmt.Sprintf("%d machines in %s", want, set), func() error {
		if got := f.view(cluster).Machines[cluster+"-"+set]; got != want {
			return fmt.Errorf("Omni has %d", got)
		}

		return nil
	})
}
