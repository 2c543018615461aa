// Package plantest plans and applies for the tests of other packages.
package plantest

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// Load reads a template that Omni accepts.
func Load(t *testing.T, document string) *plan.Template {
	t.Helper()

	template, err := plan.Load([]byte(document))
	if err != nil {
		t.Fatal(err)
	}

	return template
}

// Sync makes a state match a template.
func Sync(t *testing.T, st state.State, document string) {
	t.Helper()

	made, err := plan.Sync(t.Context(), st, Load(t, document), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = plan.Apply(t.Context(), st, made, plan.ApplyOptions{Consent: plan.EveryChange}); err != nil {
		t.Fatal(err)
	}
}

// Lines returns one line for each change: the action and the resource.
func Lines(changes []plan.Change) []string {
	shown := []string{}
	for _, change := range changes {
		shown = append(shown, string(change.Action)+" "+omni.KindOf(change.Type)+" "+change.ID)
	}

	return shown
}
