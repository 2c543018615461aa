package consent

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestChangedSince has a second change join one that waits: it has not been seen for as long as the first. What goes away
// again, and a turn that is handed back, do not make the rest look new.
func TestChangedSince(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	first := tt.now
	expect := func(what string, held, changed time.Time) {
		t.Helper()

		status := tt.status()
		if status.HeldSince == nil || status.ChangedSince == nil || !status.HeldSince.Time.Equal(held) || !status.ChangedSince.Time.Equal(changed) {
			t.Errorf("%s: held since %v, changed since %v; want %s and %s", what, status.HeldSince, status.ChangedSince, held, changed)
		}
	}

	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	expect("one change", first, first)

	tt.pass(time.Hour)
	tt.decide()
	expect("an hour later", first, first)

	second := tt.now

	tt.ask("v1.13.2", "v1.13.3")
	tt.decide()
	expect("another change", first, second)

	tt.pass(time.Hour)
	tt.ask("v1.36.1", "v1.35.0")
	tt.decide()
	expect("the first is taken back", first, second)

	tt.pass(time.Hour)
	tt.wait = Wait{}
	tt.ticket()
	tt.decide()
	expect("admitted", first, second)

	tt.pass(time.Minute)
	tt.wait = closed()
	tt.decide()

	if status := tt.status(); status.State != v1alpha1.RolloutHeld || status.Last == nil || status.Last.Result != v1alpha1.RolloutReturned {
		t.Fatalf("it is not handed back: %+v", status)
	}

	expect("handed back", first, second)
}
