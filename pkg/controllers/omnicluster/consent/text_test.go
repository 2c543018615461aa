package consent

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestSummary(t *testing.T) {
	create, update, destroy := plan.Change{Action: plan.ActionCreate}, plan.Change{Action: plan.ActionUpdate}, plan.Change{Action: plan.ActionDestroy}

	for _, test := range []struct {
		plan *plan.Plan
		want string
	}{
		{&plan.Plan{Changes: []plan.Change{create, create}}, "2 to create"},
		{&plan.Plan{Changes: []plan.Change{update, destroy}, WaitingForOmni: []plan.Change{create}}, "1 to update, 1 to destroy, 1 waiting for Omni"},
	} {
		if got := Summary(test.plan); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
