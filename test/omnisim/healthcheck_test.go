package omnisim_test

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/google/go-cmp/cmp"

	ours "omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestHealthCheckStatus reads the result of a health check over the wire, with the least role.
func TestHealthCheckStatus(t *testing.T) {
	sim := start(t, omnisim.Options{OmniVersion: "1.11"})
	if err := sim.FailHealthCheck("a", "smoke", "exit code 1", "no route"); err != nil {
		t.Fatal(err)
	}

	st := connect(t, sim, key(t, sim, omnisim.RoleReader)).Omni().State()

	found, err := safe.StateGetByID[*ours.KubernetesHealthCheckStatus](deadline(t), st, "a-smoke")
	if err != nil {
		t.Fatal(err)
	}

	want := ours.KubernetesHealthCheckStatusSpec{State: ours.HealthCheckFailed, Error: "exit code 1", Output: "no route"}
	if diff := cmp.Diff(want, *found.TypedSpec()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if err := st.Destroy(deadline(t), found.Metadata()); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("a Reader destroys it: %v", err)
	}

	if err := start(t, omnisim.Options{}).FailHealthCheck("a", "smoke", "", ""); err == nil {
		t.Error("1.9 has such a status")
	}
}
