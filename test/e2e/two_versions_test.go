package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestTwoVersions raises both versions in one apply, in an Omni that takes one version at a time: the second
// write follows the first upgrade, and nothing is refused.
func TestTwoVersions(t *testing.T) {
	t.Parallel()

	for name, policy := range map[string]string{"alone": "", "in a turn": fmt.Sprintf(oneByOne, false)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := fleetWith(newSpace(t), omnisim.Options{Phase: phase, RefuseConcurrentUpgrades: true})
			if policy != "" {
				f.apply(policy)
			}

			before := tiered("c", "x", "v1.35.1")
			f.apply(before, controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
			f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
			f.omni.ForgetRequests()

			f.apply(strings.NewReplacer("v1.35.1", "v1.36.1", "v1.13.3", "v1.13.5").Replace(before))
			f.waitShows("both versions", "ocl", "c", "{.status.omni.talosVersion} {.status.omni.upgrades.kubernetes.version}", "v1.13.5 v1.36.1")
			f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
			f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

			if policy != "" {
				f.waitShows("the turn to be over", "ocl", "c", "{.status.rollout.last.result}{.status.rollout.failure}", "Done")
			}

			if got := f.clusterWrites(); !slices.Equal(got, []string{"c", "c"}) {
				t.Errorf("updates of Clusters: %v, want two", got)
			}

			if events := f.run("get", "events", "-o", "jsonpath={.items[*].note}{.items[*].message}"); strings.Contains(events, "refuse") {
				t.Errorf("refused: %s", events)
			}
		})
	}
}
