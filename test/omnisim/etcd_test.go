package omnisim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// controlPlaneOf returns a template of a control plane alone.
func controlPlaneOf(machines ...string) string {
	return fmt.Sprintf(`kind: Cluster
name: quorum
kubernetes:
  version: v1.35.1
talos:
  version: v1.13.5
---
kind: ControlPlane
machines: [%s]
`, strings.Join(machines, ", "))
}

// TestControlPlaneKeepsItsQuorum checks that Omni accepts every removal from a control plane, and carries out those that etcd survives:
// the only member stays until another one has joined, and of three with a dead one the dead one alone may leave.
func TestControlPlaneKeepsItsQuorum(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []int
		dead          int // -1: none
		unknown       bool
		stays         bool
	}{
		"the only one, for one that never comes": {before: []int{0}, dead: -1, unknown: true, stays: true},
		"the only one, for another":              {before: []int{0}, after: []int{1}, dead: -1},
		"one of three":                           {before: []int{0, 1, 2}, after: []int{1, 2}, dead: -1},
		"the dead one of three":                  {before: []int{0, 1, 2}, after: []int{1, 2}, dead: 0, stays: true}, // it cannot be wiped
		"a good one of three, beside a dead one": {before: []int{0, 1, 2}, after: []int{1, 2}, dead: 2, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sim := start(t, omnisim.Options{Phase: phase})
			ctx, st := deadline(t), operator(t, sim)

			machines, err := sim.AddMachines(3)
			if err != nil {
				t.Fatal(err)
			}

			pick := func(places []int) (ids []string) {
				for _, place := range places {
					ids = append(ids, machines[place])
				}

				return ids
			}

			apply(ctx, t, st, controlPlaneOf(pick(test.before)...))
			waitFor(ctx, t, st, omni.NewLoadBalancerStatus("quorum"), func(s *omni.LoadBalancerStatus) bool { return s.TypedSpec().Value.Healthy })
			waitFor(ctx, t, st, omni.NewClusterStatus("quorum"), healthy(uint32(len(test.before))))

			if test.dead >= 0 {
				sim.KillMachine(machines[test.dead])
				waitFor(ctx, t, st, omni.NewMachineStatus(machines[test.dead]), func(s *omni.MachineStatus) bool { return !s.TypedSpec().Value.Connected })
			}

			after := pick(test.after)
			if test.unknown {
				after = append(after, "99999999-9999-4999-8999-999999999999")
			}

			apply(ctx, t, st, controlPlaneOf(after...))
			waitGone(ctx, t, st, omni.NewMachineSetNode(machines[0], omni.NewMachineSet("")).Metadata())

			if !test.stays {
				waitGone(ctx, t, st, omni.NewClusterMachine(machines[0]).Metadata())

				return
			}

			waitFor(ctx, t, st, omni.NewClusterMachineStatus(machines[0]), func(s *omni.ClusterMachineStatus) bool {
				stage := s.TypedSpec().Value.Stage.String()

				return stage == "BEFORE_DESTROY" || stage == "DESTROYING" && test.dead == 0
			})

			if _, err := st.Get(ctx, omni.NewClusterMachine(machines[0]).Metadata()); state.IsNotFoundError(err) {
				t.Error("it left")
			}
		})
	}
}
