package omnihelmrelease

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The status says once that no schema checked the values, also after a restart of the controller.
func TestUncheckedValuesAreSaid(t *testing.T) {
	const said = "not checked against a values.schema.json"

	f := newFixture(t)
	f.settle()

	if message := f.want(v1alpha1.ConditionReleased, yes, v1alpha1.ReasonDeployed); strings.Contains(message, said) {
		t.Error(message)
	}

	f.cluster.revisions[0].Unchecked = true

	for range 2 {
		f.restart()
		f.settle()

		if message := f.want(v1alpha1.ConditionReleased, yes, v1alpha1.ReasonDeployed); !strings.Contains(message, said) {
			t.Error(message)
		}

		said := 0

		for _, condition := range f.get().Status.Conditions {
			if condition.Type != v1alpha1.ConditionReady && strings.Contains(condition.Message, "values.schema.json") {
				said++
			}
		}

		if said != 1 {
			t.Errorf("%d conditions say it", said)
		}
	}
}
