package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// leaseDuration and leaseRetry are those of the controller's library: how long a lease holds that nobody renews,
	// and how often its holder renews it.
	leaseDuration, leaseRetry = 15 * time.Second, 2 * time.Second
	// handovers is how often a leader that stops may hand over late, on a busy machine.
	handovers = 3
	// joinTime is how long the documents of a cluster must be unchanged before a machine joins it: longer than a request takes
	// on a busy machine.
	joinTime = 30 * time.Second
)

// standby is two controllers of one namespace, on a management cluster of their own.
type standby struct {
	*fleet

	controllers []*env.Controller
}

// TestLeaderElection: of two controllers one works. A leader that stops hands over at once, one that is killed is
// replaced when its lease runs out, and nothing is done twice. These controllers have machines wait as long as real ones do, so what
// one apply makes of a cluster is looked at here, too.
func TestLeaderElection(t *testing.T) {
	slow(t)
	t.Parallel()

	s := newStandby(t)

	t.Run("machine joins after its settings", func(t *testing.T) { s.in(t).joinsAfterItsSettings(s.machines[1], s.machines[2]) })
	s.omni.ForgetRequests()

	s.cluster("c", "")

	s.handOver()

	if holds := s.run("get", "lease", "omni-controller", "-o", "jsonpath={.spec.leaseDurationSeconds}"); holds != "15" {
		t.Errorf("the lease of a leader that is killed holds %s seconds, want %s", holds, leaseDuration)
	}

	s.leader().Kill()
	s.run("scale", "omniworkers/c-w", "--replicas=3")
	s.leader()
	s.waitMachines("c", "c-w", 3)
	s.wroteOnce()
	s.wantDestroyed()
}

func newStandby(t *testing.T) *standby {
	t.Helper()

	f := newFleet(t) // its namespace on the shared cluster stays empty but for the connection
	options := env.ControllerOptions{
		Namespace: f.name, LeaderElection: true, DestroySettleTime: settleTime, JoinSettleTime: joinTime, Args: []string{"--rollout-ready-time=2s"},
	}

	hub, err := env.StartStack(t.Context(), env.StackOptions{Controller: options})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	options.Name = "omni-controller-1"

	other, err := hub.StartController(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	s := &standby{
		fleet:       &fleet{space: &space{t: t, name: f.name, hub: hub}, omni: f.omni, key: f.key, machines: f.machines},
		controllers: []*env.Controller{hub.Controller, other},
	}
	s.explainsFailure()
	s.apply(secretManifest("key", f.key, f.omni.Endpoint()), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))

	return s
}

// joinsAfterItsSettings applies the documents of a cluster one after the other, the OmniMachine last: the controller looks at the cluster
// before the OmniMachine is there.
func (f *fleet) joinsAfterItsSettings(controlPlane, worker string) {
	f.t.Helper()

	f.apply(clusterManifest("d"), controlPlaneManifest("d-cp", "d", controlPlane), workersManifest("d-w", "d", "machines: ["+worker+"]"))
	f.says("d", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonWaitingForDocuments, worker, "at the latest")
	f.apply(machineManifest(worker, "d", "  install: {disk: /dev/vda}", "  patches: [{name: swap, inline: {machine: {sysctls: {vm.swappiness: \"1\"}}}}]"))
	f.ready("d")

	var made []string

	for _, write := range f.omni.Writes() {
		if write.Verb == "Create" && strings.Contains(write.ID, worker) {
			made = append(made, strings.TrimSuffix(write.Type, ".omni.sidero.dev"))
		}
	}

	if want := []string{"ConfigPatches", "ConfigPatches", "MachineSetNodes"}; !slices.Equal(want, made) {
		f.t.Errorf("created of the machine in this order: %v, want %v", made, want)
	}

	f.run("delete", "ocl,ocp,ow,om", "--all", "--timeout=60s")
	f.waitRemoteGone("d")
}

// leader waits until exactly one controller says that it leads.
func (s *standby) leader() *env.Controller {
	s.t.Helper()

	var leader *env.Controller

	if err := env.Eventually(s.t.Context(), eventually, "one leader", func(ctx context.Context) error {
		leader = nil

		for _, controller := range s.controllers {
			if !controller.Running() {
				continue
			}

			metrics, err := controller.Metrics(ctx)
			if err != nil {
				return err
			}

			if !strings.Contains(metrics, `leader_election_master_status{name="omni-controller"} 1`) {
				continue
			}

			if leader != nil {
				return errors.New("two controllers lead")
			}

			leader = controller
		}

		if leader == nil {
			return errors.New("nobody leads")
		}

		return nil
	}); err != nil {
		s.t.Fatal(err)
	}

	return leader
}

// handOver stops the leader and waits for the other controller to lead, which takes less than a lease holds that
// was not given back. Both run afterwards.
func (s *standby) handOver() {
	s.t.Helper()

	const most = leaseDuration - leaseRetry

	for range handovers {
		leader, begin := s.leader(), time.Now()

		if err := leader.Stop(); err != nil {
			s.t.Fatal(err)
		}

		s.leader()

		took := time.Since(begin).Round(100 * time.Millisecond)
		s.t.Logf("another controller leads %s after the leader was stopped", took)

		if err := leader.Restart(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}

		if took < most {
			return
		}
	}

	s.t.Errorf("a leader was stopped %d times, and another one led no sooner than after %s", handovers, most)
}

// wroteOnce looks for anything that was made twice in Omni.
func (s *standby) wroteOnce() {
	s.t.Helper()

	made := map[string]int{}

	for _, write := range s.omni.Writes() {
		if write.Verb == "Create" {
			made[fmt.Sprintf("%s %s", write.Type, write.ID)]++
		}
	}

	for what, times := range made {
		if times > 1 {
			s.t.Errorf("%s was made %d times", what, times)
		}
	}

	if len(made) == 0 {
		s.t.Error("nothing was made")
	}
}
