package omnicluster

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestPlanText(t *testing.T) {
	create, update, destroy := omni.Change{Action: omni.ActionCreate}, omni.Change{Action: omni.ActionUpdate}, omni.Change{Action: omni.ActionDestroy}

	for _, test := range []struct {
		plan *omni.Plan
		want string
	}{
		{&omni.Plan{Changes: []omni.Change{create, create}}, "2 to create"},
		{&omni.Plan{Changes: []omni.Change{update, destroy}, Waiting: []omni.Change{create}}, "1 to update, 1 to destroy, 1 waiting for Omni"},
	} {
		if got := planText(test.plan); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
