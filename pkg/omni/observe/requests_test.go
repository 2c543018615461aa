package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// requestFor returns a request for a machine of a set of cluster demo, with a stage and an error.
func requestFor(id, set, provider string, stage specs.ClusterMachineRequestStatusSpec_Stage, failure string) *omnires.ClusterMachineRequestStatus {
	request := omnitest.Labelled(omnires.NewClusterMachineRequestStatus(id), "demo")
	request.Metadata().Labels().Set(omnires.LabelMachineSet, set)
	request.TypedSpec().Value = &specs.ClusterMachineRequestStatusSpec{Stage: stage, ProviderId: provider, Error: failure}

	return request
}

func TestObserveRequests(t *testing.T) {
	const (
		unknown        = specs.ClusterMachineRequestStatusSpec_UNKNOWN
		pending        = specs.ClusterMachineRequestStatusSpec_PENDING
		provisioning   = specs.ClusterMachineRequestStatusSpec_PROVISIONING
		provisioned    = specs.ClusterMachineRequestStatusSpec_PROVISIONED
		deprovisioning = specs.ClusterMachineRequestStatusSpec_DEPROVISIONING
		failed         = specs.ClusterMachineRequestStatusSpec_FAILED
	)

	st := omnitest.NewFakeOmni()
	used := requestFor("demo-w-used", "demo-w", "vms", failed, "before it came")
	used.Metadata().Labels().Set(omnires.LabelMachineRequestInUse, "")

	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"), omnitest.ClassSet("demo", "w", "made", 6), omnitest.ClassSet("demo", "x", "made", 1),
		omnitest.ClassSet("demo", "y", "any", 1), used,
		requestFor("demo-w-a", "demo-w", "old", pending, ""), requestFor("demo-w-b", "demo-w", "vms", provisioning, "the text of a Secret"),
		requestFor("demo-w-c", "demo-w", "new", failed, ""), requestFor("demo-w-d", "demo-w", "new", provisioning, ""),
		requestFor("demo-w-e", "demo-w", "new", provisioned, "of before"), requestFor("demo-w-f", "demo-w", "new", deprovisioning, "no"),
		requestFor("demo-x-a", "demo-x", "vms", unknown, ""), requestFor("demo-z-a", "demo-z", "vms", failed, ""))

	want := []Requests{
		{Provider: "vms", Pending: 1, Provisioning: 1, Provisioned: 1, Failing: 2, FirstFailing: "demo-w-b"},
		{Provider: "vms", Pending: 1},
		{},
	}

	for name, source := range map[string]state.State{"Omni": st, "the copy": mirrortest.Start(t, st, mirror.Options{}).State()} {
		status, err := Observe(t.Context(), source, "demo")
		if err != nil {
			t.Fatal(err)
		}

		var got []Requests
		for _, set := range status.MachineSets {
			got = append(got, set.Requests)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestRequestsAreBounded has IDs that Omni would not make.
func TestRequestsAreBounded(t *testing.T) {
	st := omnitest.NewFakeOmni()
	long := strings.Repeat("long ", 1000)

	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"), omnitest.ClassSet("demo", "w", "made", 2),
		requestFor(long+"\n", "demo-w", long+"\n", specs.ClusterMachineRequestStatusSpec_FAILED, long))

	got, err := Observe(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	running := runningStatus()
	running.Phase, running.MachineSets = "ScalingUp", got.MachineSets
	running.MachineSets[0].Known, running.MachineSets[0].Machines.Requested = true, 2

	_, reason, message := Running(running)
	if reason != ReasonScalingUp || len(message) > redact.MaxBytes || !strings.Contains(message, "fails to provision 1; `omnictl get clustermachinerequeststatus long") ||
		strings.Contains(message, "\n") {
		t.Errorf("%s, %d bytes: %s", reason, len(message), message)
	}
}

// TestNameOfRequestsForOmnictl checks that omnictl has the type under the name that the message tells.
func TestNameOfRequestsForOmnictl(t *testing.T) {
	definition, err := meta.NewResourceDefinition(omnires.ClusterMachineRequestStatusExtension{}.ResourceDefinition())
	if err != nil {
		t.Fatal(err)
	}

	if names := definition.TypedSpec().AllAliases; !slices.Contains(names, "clustermachinerequeststatus") {
		t.Errorf("it has %v", names)
	}
}
