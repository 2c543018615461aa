package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestRollouts(t *testing.T) {
	rollouts := NewRollouts()
	production := types.NamespacedName{Namespace: "fleet", Name: "production"}
	nights := types.NamespacedName{Namespace: "homelab", Name: "nights"}

	rollouts.Set(nights, Rollout{Stages: map[string]RolloutStage{"gone": {Clusters: map[string]int{"held": 1}}}})
	rollouts.Set(nights, Rollout{Stages: map[string]RolloutStage{"all": {}}})
	rollouts.Set(production, Rollout{Stopped: true, Stages: map[string]RolloutStage{
		"canary": {Clusters: map[string]int{"held": 0, "admitted": 2, "failed": 1}},
		"prod":   {Clusters: map[string]int{"held": 9}, Opens: time.Unix(1700000000, 999), OldestHeld: time.Unix(1600000000, 0)},
	}})

	rollouts.CountOverride(production)
	rollouts.CountOverride(production)

	if diff := cmp.Diff([]string{
		"omni_rollout_clusters{namespace=fleet,policy=production,stage=canary,state=admitted} value:2",
		"omni_rollout_clusters{namespace=fleet,policy=production,stage=canary,state=failed} value:1",
		"omni_rollout_clusters{namespace=fleet,policy=production,stage=canary,state=held} value:0",
		"omni_rollout_clusters{namespace=fleet,policy=production,stage=prod,state=held} value:9",
		"omni_rollout_next_open_timestamp_seconds{namespace=fleet,policy=production,stage=prod} value:1.7e+09",
		"omni_rollout_oldest_held_timestamp_seconds{namespace=fleet,policy=production,stage=prod} value:1.6e+09",
		"omni_rollout_overrides_total{namespace=fleet,policy=production} value:2",
		"omni_rollout_stopped{namespace=fleet,policy=production} value:1",
		"omni_rollout_stopped{namespace=homelab,policy=nights} value:0",
	}, gather(t, rollouts)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}

	rollouts.Forget(production)
	rollouts.Forget(types.NamespacedName{Namespace: "fleet", Name: "unknown"})

	if diff := cmp.Diff([]string{"omni_rollout_stopped{namespace=homelab,policy=nights} value:0"}, gather(t, rollouts)); diff != "" {
		t.Errorf("series of the policy that is left (-want +got):\n%s", diff)
	}
}
