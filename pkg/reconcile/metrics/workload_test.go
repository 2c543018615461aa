package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

// All series are there also while nothing waits.
func TestWorkloadRuns(t *testing.T) {
	runs := metrics.NewWorkloadRuns(func(kind string) (int, int) {
		if kind == "OmniSecretSync" {
			return 0, 0
		}

		return 2, 3
	}, "OmniSecretSync", "OmniHelmRelease")

	want := `# HELP omni_workload_runs_waiting Objects whose runs wait for a slot of their workload cluster or of their namespace.
# TYPE omni_workload_runs_waiting gauge
omni_workload_runs_waiting{kind="OmniHelmRelease",slot="cluster"} 2
omni_workload_runs_waiting{kind="OmniHelmRelease",slot="namespace"} 3
omni_workload_runs_waiting{kind="OmniSecretSync",slot="cluster"} 0
omni_workload_runs_waiting{kind="OmniSecretSync",slot="namespace"} 0
`
	if err := testutil.CollectAndCompare(runs, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
