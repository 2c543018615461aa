package v1alpha1_test

import (
	"encoding/json"
	"testing"

	applyv1alpha1 "omni.texashpc.com/omni-cluster-operator/pkg/generated/applyconfiguration/omni/v1alpha1"
)

// TestApplyConfigurationKeepsEmptyLists: an empty list of system extensions or kernel arguments means none, an unset one
// means whatever the machines have. Who applies with the Go client has to be able to say both.
func TestApplyConfigurationKeepsEmptyLists(t *testing.T) {
	set, machine := applyv1alpha1.OmniClusterSpec(), applyv1alpha1.MachineConfiguration()

	for name, value := range map[string]any{"OmniClusterSpec": set, "MachineConfiguration": machine} {
		if got := marshal(t, value); got != "{}" {
			t.Errorf("%s without lists: %s", name, got)
		}
	}

	set.SystemExtensions, set.KernelArgs = []string{}, []string{}
	machine.SystemExtensions, machine.KernelArgs = []string{}, []string{}

	const want = `{"systemExtensions":[],"kernelArgs":[]}`

	for name, value := range map[string]any{"OmniClusterSpec": set, "MachineConfiguration": machine} {
		if got := marshal(t, value); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func marshal(t *testing.T, value any) string {
	t.Helper()

	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}
