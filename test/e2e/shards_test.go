package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// Two namespaces with a controller each, and one Omni: each controller has its own lease and its own clusters, and works
// whatever the other does.
func TestShards(t *testing.T) {
	slow(t)
	t.Parallel()

	first, second, controller := newShards(t)
	first.cluster("a")
	second.cluster("b")

	holder := func(f *fleet) string {
		return f.run("get", "lease", "omni-controller", "-o", "jsonpath={.spec.holderIdentity}")
	}
	if holder(first) == "" || holder(first) == holder(second) {
		t.Errorf("the leases are held by %q and %q", holder(first), holder(second))
	}

	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}

	first.run("scale", "omniworkers/a-w", "--replicas=3")
	second.run("scale", "omniworkers/b-w", "--replicas=3")
	second.waitMachines("b", "b-w", 3)
	second.waitCondition("ocl", "b", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	if got := first.view("a").Machines["a-a-w"]; got != 2 {
		t.Errorf("the controller of another namespace worked: %d machines", got)
	}

	if err := controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	first.waitMachines("a", "a-w", 3)
	first.waitCondition("ocl", "a", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// newShards starts a management cluster with two namespaces and a controller for each. It returns the namespaces, which
// have the same Omni, and the controller of the first.
func newShards(t *testing.T) (first, second *fleet, controller *env.Controller) {
	t.Helper()

	f := newFleet(t) // its namespace on the shared cluster stays empty but for the connection
	options := env.ControllerOptions{Namespace: f.name, LeaderElection: true, DestroySettleTime: settleTime}

	hub, err := env.StartStack(t.Context(), env.StackOptions{Controller: options})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	in := func(namespace string, machines []string) *fleet {
		return &fleet{space: &space{t: t, name: namespace, hub: hub}, omni: f.omni, key: f.key, machines: machines}
	}
	first, second = in(f.name, f.machines), in(f.name+"-b", f.machines[1:])
	first.run("create", "namespace", second.name)

	options.Namespace, options.Name = second.name, "omni-controller-b"
	if _, err := hub.StartController(t.Context(), options); err != nil {
		t.Fatal(err)
	}

	for _, shard := range []*fleet{first, second} {
		shard.explainsFailure()
		shard.apply(secretManifest("key", f.key, f.omni.Endpoint()), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))
	}

	return first, second, hub.Controller
}
