package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// The memory limits of the Pods, as in the values of the chart, in bytes.
const (
	apiServerLimit  = 1 << 30
	controllerLimit = 768 << 20
)

// attackTimeout is how long a state is waited for that comes as soon as the machine gets to it: a bound for what hangs.
const attackTimeout = 10 * time.Minute

// storageSlow is what etcd says when its disk does not keep up.
const storageSlow = "etcdserver: request timed out"

// healthyClusters is how many clusters another tenant has.
const healthyClusters = 10

// Whatever a tenant does, and whatever a chart, a workload cluster or an Omni does that the tenant refers to: all of it
// at the same time, both programs stay below the memory that their Pods have, and another tenant's clusters are served.
func TestAttacks(t *testing.T) {
	slow(t)
	t.Parallel()

	hub := startAttacked(t)
	well := fleetIn(spaceOn(t, hub, "well"))
	tenant := tenantOn(t, hub)

	for i := range healthyClusters {
		well.demandOne(i)
	}

	for i := range healthyClusters {
		well.waitCondition("ocl", demanded(i), v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	check := watchPrograms(t, hub)
	times := watchRequests(t, well)

	t.Run("all", func(t *testing.T) {
		t.Run("clusters of another tenant", func(t *testing.T) {
			t.Parallel()

			for i := range healthyClusters {
				well.in(t).serve(healthyClusters + i)
			}
		})

		for _, attack := range attacks {
			t.Run(attack.name, func(t *testing.T) {
				t.Parallel()
				attack.run(tenant.in(t))
			})
		}
	})

	times()
	check("**All of them at the same time**", "")
}

// Each attack alone, on programs that have done nothing else.
func TestAttackAlone(t *testing.T) {
	attackOnly(t)

	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			hub := startAttacked(t)
			tenant := tenantOn(t, hub)
			check := watchPrograms(t, hub)
			attack.run(tenant)
			check(attack.name, attack.before)
		})
	}
}

// attackOnly is the first line of a test that only `make attacks` runs: it takes minutes, or the machine.
func attackOnly(t *testing.T) {
	t.Helper()

	if os.Getenv("ATTACKS") == "" {
		t.Skip("make attacks runs it")
	}
}

func tenantOn(t *testing.T, hub *env.Stack) *attacker {
	t.Helper()

	return attackerIn(releasingIn(deliveryIn(fleetIn(spaceOn(t, hub, "tenant")))))
}

func startAttacked(t *testing.T) *env.Stack {
	t.Helper()

	options := env.StackOptions{Controller: env.ControllerOptions{DestroySettleTime: settleTime}}
	if err := env.CanLimitMemory(); err == nil {
		options.OmniAPIServer.MemoryLimit, options.Controller.MemoryLimit = apiServerLimit, controllerLimit
	} else {
		t.Logf("Nothing enforces the limits of the Pods here, so memory is only watched: %v", err)
	}

	hub, err := env.StartStack(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	return hub
}

func spaceOn(t *testing.T, hub *env.Stack, name string) *space {
	t.Helper()

	s := &space{t: t, name: name, hub: hub, timeout: attackTimeout}
	s.explainsFailure()
	s.run("create", "namespace", name)

	return s
}

// meter follows the memory of a program.
type meter struct {
	name               string
	limit, first, peak uint64
	stop               func()
	crashed            func() error
	killed             func() int
}

// sampled is how often something is looked at during the attacks.
const sampled = 20 * time.Millisecond

// watchPrograms follows the memory of both programs. What it returns checks it, and tells the peaks as a row of the table that
// hack/attacks.sh prints.
func watchPrograms(t *testing.T, hub *env.Stack) (check func(attack, before string)) {
	t.Helper()

	apiServer := watchMemory(t, "omni-apiserver", hub.OmniAPIServer, apiServerLimit)
	controller := watchMemory(t, "omni-controller", hub.Controller, controllerLimit)

	return func(attack, before string) {
		apiServer.check(t)
		controller.check(t)
		t.Logf("| %s | %s | %d | %d |", attack, before, apiServer.peak>>20, controller.peak>>20)
	}
}

func watchMemory(t *testing.T, name string, program interface {
	Memory() (uint64, error)
	Crashed() error
	KilledForMemory() int
}, limit uint64,
) *meter {
	t.Helper()

	m := &meter{name: name, limit: limit, crashed: program.Crashed, killed: program.KilledForMemory}
	m.stop = inBackground(t, func() {
		if held, err := program.Memory(); err == nil {
			m.peak = max(m.peak, held)
			if m.first == 0 {
				m.first = held
			}
		}
	})

	return m
}

func (m *meter) check(t *testing.T) {
	t.Helper()
	m.stop()

	if err := m.crashed(); err != nil {
		t.Error(err)
	}

	if killed := m.killed(); killed > 0 {
		t.Errorf("%s: the kernel killed %d processes for want of memory", m.name, killed)
	}

	t.Logf("%s: %d of %d MiB, %d before the attacks", m.name, m.peak>>20, m.limit>>20, m.first>>20)

	if m.peak > m.limit {
		t.Errorf("%s took %d MiB, and its Pod has %d", m.name, m.peak>>20, m.limit>>20)
	}
}

// watchRequests reads an object of the other tenant all the time. None of these may fail; how long they take is told,
// because it says more about the machine.
func watchRequests(t *testing.T, well *fleet) func() {
	t.Helper()

	var (
		took   []time.Duration
		failed []error
		path   = "/apis/omni.texashpc.com/v1alpha1/namespaces/" + well.name + "/omniclusters/" + demanded(0)
		client = well.stack().Client().Discovery().RESTClient()
	)

	stop := inBackground(t, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()

		begun := time.Now()
		if _, err := client.Get().AbsPath(path).DoRaw(ctx); err != nil {
			failed = append(failed, err)
		}

		took = append(took, time.Since(begun))
	})

	return func() {
		stop()

		if len(failed) > 0 {
			t.Errorf("%d of %d requests failed, such as: %v", len(failed), len(took), failed[0])
		}

		slices.Sort(took)
		t.Logf("%d requests; half within %s, 99 %% within %s", len(took), took[len(took)/2], took[len(took)*99/100])
	}
}

// inBackground does something again and again until it is stopped.
func inBackground(t *testing.T, do func()) (stop func()) {
	t.Helper()

	var running sync.WaitGroup

	ended := make(chan struct{})
	running.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(sampled):
				do()
			}
		}
	})

	stop = sync.OnceFunc(func() {
		close(ended)
		running.Wait()
	})
	t.Cleanup(stop)

	return stop
}

// in is the fleet for a part of the test.
func (f *fleet) in(t *testing.T) *fleet {
	s, copied := *f.space, *f
	s.t, copied.space = t, &s

	return &copied
}

// attacker is the tenant who attacks, in one of the attacks.
type attacker struct{ *releasing }

func attackerIn(r *releasing) *attacker { return &attacker{r} }

// in is the attacker for one attack's test.
func (a *attacker) in(t *testing.T) *attacker {
	d, r := *a.delivery, *a.releasing
	d.fleet, r.delivery = a.fleet.in(t), &d

	return &attacker{&r}
}

// apply applies them, again while the disk of the storage does not keep up with what the attacks write.
func (a *attacker) apply(manifests ...string) {
	a.t.Helper()

	for end := time.Now().Add(attackTimeout); ; {
		err := a.tryApply(manifests...)
		if err == nil {
			return
		}

		if !strings.Contains(err.Error(), storageSlow) || time.Now().After(end) {
			a.t.Fatal(err)
		}
	}
}

// refusedForGood waits until the object says that it goes no further, and why.
func (a *attacker) refusedForGood(resource, name string, texts ...string) {
	a.t.Helper()

	message := a.waitCondition(resource, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "")
	a.t.Logf("%s: %s", name, message)

	if !containsAll(message, texts) {
		a.t.Errorf("%q does not say %q", message, texts)
	}
}

// aliases is a YAML list of many aliases of one long text; it becomes count times that long.
func aliases(name string, length, count int) string {
	return fmt.Sprintf("%s: &a %s\n%s2: [%s]\n", name, strings.Repeat("x", length), name, strings.TrimSuffix(strings.Repeat("*a,", count), ","))
}
