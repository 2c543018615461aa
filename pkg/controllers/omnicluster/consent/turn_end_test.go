package consent

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestTicketGoesBack gives a ticket that cannot be used: it must not keep the turn from others.
func TestTicketGoesBack(t *testing.T) {
	for name, change := range map[string]func(*turns){
		"suspended":          func(tt *turns) { tt.cluster.Spec.Suspend = true },
		"only observed":      func(tt *turns) { tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
		"in another stage":   func(tt *turns) { tt.gate.Stage = "other" },
		"outside the window": func(tt *turns) { tt.wait = closed() },
		"from a clock ahead": func(tt *turns) {
			tt.cluster.Spec.Suspend = true
			tt.gate.Ticket.Since.Time = tt.now.Add(20 * time.Second)
		},
		"the changes are others": func(tt *turns) { tt.ask("v1.13.2", "v1.13.3") },
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.ask("v1.35.0", "v1.36.1")
			tt.decide()
			tt.ticket()
			change(tt)
			tt.decide()

			status, ticket := tt.status(), *tt.gate.Ticket
			if last := status.Last; last == nil || last.Result != v1alpha1.RolloutReturned || last.Hash != ticket.Hash || last.Time.Time.Before(ticket.Since.Time) {
				t.Errorf("%s, last %+v, of the ticket %+v", status.State, last, ticket)
			}

			if status.State == v1alpha1.RolloutAdmitted {
				t.Error("it begins")
			}
		})
	}
}

// TestSeenAfterTheDeadline has nobody look until the deadline is over, as when omni-controller was away. What is Ready as
// asked by then is done.
func TestSeenAfterTheDeadline(t *testing.T) {
	for healthy, want := range map[bool]v1alpha1.RolloutOutcome{true: v1alpha1.RolloutDone, false: v1alpha1.RolloutUnsuccessful} {
		tt := newTurns(t)
		tt.ask("v1.35.0", "v1.36.1")
		tt.decide()
		tt.ticket()
		tt.run()

		tt.pass(time.Second)
		tt.gate.Turn.Since, tt.gate.Turn.Healthy = tt.now, healthy
		tt.pass(3 * time.Hour)
		tt.run()

		if last := tt.status().Last; last == nil || last.Result != want {
			t.Errorf("healthy: %t: %+v, want %s", healthy, last, want)
		}
	}
}
