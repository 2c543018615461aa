package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

func TestHelmActions(t *testing.T) {
	actions := metrics.NewHelmActions()
	actions.Ended("install", metrics.HelmSucceeded)
	actions.Ended("upgrade", metrics.HelmFailed)
	actions.Ended("upgrade", metrics.HelmFailed)

	want := `# HELP omni_helm_actions_total Helm actions that have ended, such as install, upgrade, rollback, uninstall, test, unlock and correct.
# TYPE omni_helm_actions_total counter
omni_helm_actions_total{action="install",result="success"} 1
omni_helm_actions_total{action="upgrade",result="failure"} 2
`
	if err := testutil.CollectAndCompare(actions, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// Prometheus sees how much a counter grows, and so no failure before the counter is there.
func TestHelmActionsBeginAtZero(t *testing.T) {
	actions := metrics.NewHelmActions("install", "upgrade")
	actions.Ended("install", metrics.HelmFailed)

	want := `# HELP omni_helm_actions_total Helm actions that have ended, such as install, upgrade, rollback, uninstall, test, unlock and correct.
# TYPE omni_helm_actions_total counter
omni_helm_actions_total{action="install",result="failure"} 1
omni_helm_actions_total{action="upgrade",result="failure"} 0
`
	if err := testutil.CollectAndCompare(actions, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestHelmQueue(t *testing.T) {
	queue := metrics.NewHelmQueue(func() (int64, int) { return 2, 3 })

	want := `# HELP omni_helm_actions_running Helm actions that are at work now.
# TYPE omni_helm_actions_running gauge
omni_helm_actions_running 2
# HELP omni_helm_actions_waiting Helm actions that wait for their turn.
# TYPE omni_helm_actions_waiting gauge
omni_helm_actions_waiting 3
`
	if err := testutil.CollectAndCompare(queue, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
