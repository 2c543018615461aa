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
