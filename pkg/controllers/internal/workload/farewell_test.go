package workload

import (
	"strings"
	"testing"
	"time"
)

func TestFarewell(t *testing.T) {
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	for _, test := range []struct {
		name     string
		farewell Farewell
		after    time.Duration
		want     Part
		says     string
	}{
		{"the cluster answers", Farewell{}, 0, PartCleanUp, ""},
		{"the cluster answers, its parent was orphaned and is gone", Farewell{ParentGone: true}, 0, PartCleanUp, ""},
		{"the cluster is being destroyed and still answers", Farewell{ParentDestroying: true}, 0, PartLetGo, "destroyed with its OmniCluster"},
		{"the kubeconfig is gone", Farewell{NoKubeconfig: true, Problem: "Secret gone"}, 0, PartLetGo, "Secret gone"},
		{"the parent is gone and nothing answers", Farewell{ParentGone: true, Problem: "refused"}, 0, PartLetGo, "refused"},
		{"the parent is gone and the cluster is being asked", Farewell{ParentGone: true, Asking: true, Problem: "asked"}, 0, PartWait, "deletionPolicy to Orphan"},
		{"it is being asked for ever", Farewell{Asking: true, Problem: "asked"}, time.Hour, PartLetGo, "for 1h0m0s"},
		{"the cluster should be there", Farewell{Problem: "refused"}, time.Minute, PartWait, "until 2026-01-01T13:00:00Z"},
		{"the cluster should have been there for long", Farewell{Problem: "refused"}, time.Hour, PartLetGo, "for 1h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.farewell.Since, test.farewell.Now = since, since.Add(test.after)

			part, why := test.farewell.Decide()
			if part != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d, %q; want %d, %q", part, why, test.want, test.says)
			}
		})
	}
}
