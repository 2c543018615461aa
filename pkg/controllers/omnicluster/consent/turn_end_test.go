package consent

import (
	"testing"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
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

			if got := endingOf(tt.cluster.Status.Rollout); got.Last != v1alpha1.RolloutReturned || got.State == v1alpha1.RolloutAdmitted {
				t.Fatalf("the last turn is %q, the state %q; want Returned, and that nothing begins", got.Last, got.State)
			}

			tt.isOfTicket(tt.status().Last)
		})
	}
}

// TestTurnWhoseChangesWaitForDocuments has a document change after a machine's replacement got its turn. Until the new machine may
// join, nothing is made, and the turn is not over: the next cluster must not begin.
func TestTurnWhoseChangesWaitForDocuments(t *testing.T) {
	tt := newTurns(t)
	if err := tt.omni.Create(t.Context(), omnires.NewMachineStatus(omnitest.Machine4)); err != nil {
		t.Fatal(err)
	}

	tt.ask(omnitest.Machine3, omnitest.Machine4)
	tt.decide()
	tt.pass(settleTime)
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.says("with a ticket", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})

	tt.documents, tt.joinSettleTime = "another", 2*time.Second

	for range 2 {
		d := tt.decide()
		if waiting := d.waitingForDocuments(); len(waiting) != 2 {
			t.Fatalf("%v wait for documents, want the machine that comes and the one that goes", waiting)
		}

		tt.says("while documents arrive", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})
		tt.pass(time.Second)
	}

	if d := tt.run(); len(d.Done()) == 0 {
		t.Error("nothing was made")
	}

	tt.says("when it is made", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})
}

// TestSeenAfterTheDeadline has nobody look until the deadline is over, as when omni-controller was away. What is Ready as
// asked by then is done.
func TestSeenAfterTheDeadline(t *testing.T) {
	for healthy, want := range map[bool]v1alpha1.RolloutOutcome{true: v1alpha1.RolloutDone, false: v1alpha1.RolloutUnsuccessful} {
		tt := newTurns(t)
		tt.begin("v1.35.0", "v1.36.1")

		tt.pass(time.Second)
		tt.gate.Turn.Since, tt.gate.Turn.Healthy = tt.now, healthy
		tt.pass(3 * time.Hour)
		tt.run()

		if got := endingOf(tt.cluster.Status.Rollout).Last; got != want {
			t.Errorf("healthy: %t: the turn ended %q, want %q", healthy, got, want)
		}
	}
}

// TestSeenInOmniAfterTheDeadline has the status be from the middle of an upgrade that Omni has finished since, with a newer version
// asked for. The turn has not failed, and the newer version is no fix of it.
func TestSeenInOmniAfterTheDeadline(t *testing.T) {
	tt := newTurns(t)
	tt.begin("v1.35.0", "v1.36.1")

	tt.gate.Turn.Healthy, tt.gate.Turn.Recovered = false, true
	tt.pass(3 * time.Hour)
	tt.ask("v1.36.1", "v1.36.2")
	tt.run()

	tt.says("on the first look", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})

	tt.gate.Turn.Healthy, tt.gate.Turn.Recovered, tt.gate.Turn.Since = true, false, tt.now // the status says so now
	tt.pass(time.Minute)
	tt.run()

	tt.says("after the ready time", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutHeld, Last: v1alpha1.RolloutDone})
}

// TestOverdueTurnThatSucceeded ends a turn by its deadline while Omni does not answer. When Omni is back and runs what the turn
// wrote, nothing has failed that the next version could be the fix of.
func TestOverdueTurnThatSucceeded(t *testing.T) {
	for name, test := range map[string]struct {
		now  func(*turns)
		want bool // that the failure is dropped
	}{
		"it runs":           {func(tt *turns) { tt.gate.Turn.Recovered = true }, true},
		"it is Ready":       {func(tt *turns) { tt.gate.Turn.Healthy = true }, true},
		"it does not run":   {func(*turns) {}, false},
		"Omni has given up": {func(tt *turns) { tt.gate.Turn.Recovered, tt.cluster.Status.Rollout.Failure.Message = true, "gave up" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.begin("v1.35.0", "v1.36.1")

			tt.gate.Turn.Healthy = false
			tt.pass(3 * time.Hour)
			tt.cluster.Status.Rollout = TurnWithoutPlan(tt.cluster, tt.gate, tt.now)

			tt.ask("v1.36.1", "v1.36.2")
			test.now(tt)
			tt.run()

			if got := endingOf(tt.cluster.Status.Rollout); (got.Failure == "") != test.want || got.State != v1alpha1.RolloutHeld {
				t.Errorf("state %q, failure %q; want Held, and the failure dropped: %t", got.State, got.Failure, test.want)
			}
		})
	}
}

// TestOverdueTurn has Omni not answer until the deadline of a turn is over: there is no plan, and the turn ends all the
// same. What is left of it afterwards is not taken for the fix; other changes are.
func TestOverdueTurn(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.gate.Turn.Healthy = false

	tt.pass(2*time.Hour - time.Second)

	if next := TurnWithoutPlan(tt.cluster, tt.gate, tt.now); next != nil {
		t.Fatalf("before the deadline it ends: %+v", endingOf(next))
	}

	tt.pass(time.Second)

	for name, change := range map[string]func(*turns){
		"suspended":     func(tt *turns) { tt.cluster.Spec.Suspend = true },
		"only observed": func(tt *turns) { tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
		"well":          func(tt *turns) { tt.gate.Turn.Healthy = true },
		"no deadline":   func(tt *turns) { tt.gate.Turn.Deadline = 0 },
		"clocks differ": func(tt *turns) { tt.gate.Turn.ClocksDiffer = true }, // perhaps ours jumped, and the deadline is hours away
	} {
		other := *tt
		other.cluster = tt.cluster.DeepCopy()
		change(&other)

		if next := TurnWithoutPlan(other.cluster, other.gate, other.now); next != nil {
			t.Errorf("%s: it ends: %+v", name, endingOf(next))
		}
	}

	const overdue = "not Ready within 2h0m0s"

	next := TurnWithoutPlan(tt.cluster, tt.gate, tt.now)
	tt.says("after the deadline", next, ending{State: v1alpha1.RolloutFailed, Last: v1alpha1.RolloutUnsuccessful, Failure: overdue})
	tt.isOfTicket(next.Last)

	tt.cluster.Status.Rollout = next
	if again := TurnWithoutPlan(tt.cluster, tt.gate, tt.now); again != nil {
		t.Fatalf("it ends a second time: %+v", endingOf(again))
	}

	tt.decide()
	tt.says("with a plan again", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutHeld, Last: v1alpha1.RolloutUnsuccessful, Failure: overdue})

	if status := tt.status(); status.Failure.Left != status.Hash {
		t.Errorf("with a plan again: it asks for %q, left of the turn is %q", status.Hash, status.Failure.Left)
	}

	tt.ask("v1.36.1", "v1.36.2")
	tt.decide()
	tt.says("with the fix", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutHeld, Last: v1alpha1.RolloutUnsuccessful, Failure: overdue})

	if status := tt.status(); status.Hash == status.Failure.Left || status.Hash == status.Failure.Hash {
		t.Errorf("with the fix: it asks for %q, which is what failed (%q) or is left of it (%q)", status.Hash, status.Failure.Hash, status.Failure.Left)
	}
}

// isOfTicket checks that the result is that of the ticket, and no older.
func (tt *turns) isOfTicket(result *v1alpha1.RolloutResult) {
	tt.t.Helper()

	if ticket := tt.gate.Ticket; result.Hash != ticket.Hash || result.Time.Time.Before(ticket.Since.Time) {
		tt.t.Errorf("the result is of %q, at %s; the ticket is for %q, since %s", result.Hash, result.Time, ticket.Hash, ticket.Since)
	}
}

// TestTicketGoesBackWithoutPlan has Omni not answer when the cluster gets its ticket.
func TestTicketGoesBackWithoutPlan(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.wait = closed()
	tt.decide()
	tt.ticket()

	if next := TurnWithoutPlan(tt.cluster, tt.gate, tt.now); next != nil {
		t.Fatalf("while the cluster runs well it ends: %+v", endingOf(next))
	}

	tt.gate.Turn.Healthy = false
	next := TurnWithoutPlan(tt.cluster, tt.gate, tt.now)

	tt.says("when the cluster is not well", next, ending{State: v1alpha1.RolloutHeld, Last: v1alpha1.RolloutReturned})

	if asked := tt.status().Hash; next.Last.Hash != asked {
		t.Fatalf("returned is the turn for %q, want that for %q", next.Last.Hash, asked)
	}

	tt.cluster.Status.Rollout = next
	if again := TurnWithoutPlan(tt.cluster, tt.gate, tt.now); again != nil {
		t.Errorf("it ends a second time: %+v", endingOf(again))
	}
}

// TestCrashAfterTheWrite has omni-controller die after Omni took the changes, and before the status says so. The turn is not
// over: Omni is at work.
func TestCrashAfterTheWrite(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()
	tt.decide()
	plantest.Sync(t, tt.omni, tt.template)

	tt.pass(time.Second)
	tt.gate.Turn.Since = tt.now // when the next process began to look
	tt.decide()

	tt.says("after the crash", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})

	tt.pass(time.Minute)
	tt.decide()
	tt.says("a minute later", tt.cluster.Status.Rollout, ending{Last: v1alpha1.RolloutDone})
}

// TestAnswerOfTheWriteIsLost has Omni take the changes, while this process never learns it: the call failed, or the status
// of the run was lost. The cluster is at work, and keeps its slot until it is well with the changes, or fails.
func TestAnswerOfTheWriteIsLost(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.gate.Turn.Tried = tt.now
	plantest.Sync(t, tt.omni, tt.template)

	// The status is from before the write. It says that the cluster is well.
	tt.pass(time.Minute - time.Second)
	tt.decide()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	tt.pass(time.Minute)
	tt.gate.Turn.Healthy, tt.wait = false, Wait{Reason: v1alpha1.ReasonClusterNotReady, Message: "x"}
	tt.decide()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	failed := *tt
	failed.cluster = tt.cluster.DeepCopy()
	failed.pass(2 * time.Hour)
	failed.decide()
	failed.expect(v1alpha1.RolloutFailed, "1.36.1", v1alpha1.RolloutUnsuccessful)

	tt.gate.Turn.Healthy, tt.gate.Turn.Since = true, tt.now
	tt.pass(time.Minute)
	tt.decide()
	tt.expect("", "1.36.1", v1alpha1.RolloutDone)
}

// TestOldRefusal has Omni refuse another part of the Cluster before a turn begins, which may need the version that waits. It
// says nothing about the changes of the turn: they are tried.
func TestOldRefusal(t *testing.T) {
	refusal := func(id string) v1alpha1.RefusedChange {
		return v1alpha1.RefusedChange{Action: "Update", Type: plan.TypeCluster, ID: id, Message: "needs a newer Talos"}
	}

	tt := newTurns(t)
	tt.gate.Gates = func(kind v1alpha1.ChangeKind) bool { return kind == v1alpha1.ChangeTalosVersion }
	tt.cluster.Status.Refusals = []v1alpha1.RefusedChange{refusal("demo"), refusal("another")}
	tt.ask("v1.13.2", "v1.13.3")
	tt.decide()
	tt.ticket()
	tt.decide()

	if left := tt.cluster.Status.Refusals; len(left) != 1 || left[0].ID != "another" {
		t.Errorf("refusals after the admission: %+v", left)
	}

	d := tt.run()
	tt.says("after the admission", tt.cluster.Status.Rollout, ending{State: v1alpha1.RolloutAdmitted})

	if done := d.Done(); len(done) != 1 || done[0].To != "1.13.3" {
		t.Fatalf("done %v, want the version 1.13.3", done)
	}

	// A refusal from after the admission ends the turn.
	tt = newTurns(t)
	tt.ask("v1.13.2", "v1.13.3")
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.cluster.Status.Refusals = []v1alpha1.RefusedChange{refusal("demo")}
	tt.decide()

	if got := endingOf(tt.cluster.Status.Rollout).Last; got != v1alpha1.RolloutUnsuccessful {
		t.Errorf("refused after the admission, the turn ended %q", got)
	}
}

// TestOutcomeOfTheWriteIsUnknown has the write of a turn fail just now, and the copy of Omni not show it. It may still
// arrive: the cluster keeps its slot, and nothing is written again. Later it is known that nothing was written.
func TestOutcomeOfTheWriteIsUnknown(t *testing.T) {
	for name, stop := range map[string]func(*turns){
		"not well": func(tt *turns) {
			tt.gate.Turn.Healthy, tt.wait = false, Wait{Reason: v1alpha1.ReasonClusterNotReady, Message: "x"}
		},
		"the window closed": func(tt *turns) { tt.wait = closed() },
		"suspended":         func(tt *turns) { tt.cluster.Spec.Suspend = true },
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.ask("v1.35.0", "v1.36.1")
			tt.decide()
			tt.ticket()
			tt.decide()
			tt.gate.Turn.Tried = tt.now
			stop(tt)

			tt.pass(time.Minute - time.Second)

			if d := tt.run(); d.HasBegun() {
				t.Error("the turn counts as begun")
			}

			tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")

			tt.pass(time.Second)
			tt.run()

			if got := endingOf(tt.cluster.Status.Rollout).Last; got != v1alpha1.RolloutReturned {
				t.Errorf("a minute after the write the turn ended %q, want Returned", got)
			}
		})
	}
}

// TestEndByAClockAhead: an end that is later than now would keep the next ticket for the same changes away. It is now, but
// never earlier than the ticket that it ends.
func TestEndByAClockAhead(t *testing.T) {
	for name, test := range map[string]struct {
		ticket *time.Duration // when it was given, from now; nil: it is gone
		want   time.Duration  // of the end, from now
	}{
		"the ticket is gone":               {},
		"the ticket is from now":           {ticket: new(time.Duration(0))},
		"the ticket is from a clock ahead": {ticket: new(time.Hour), want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.wait = closed()
			tt.ask("v1.35.0", "v1.36.1")
			tt.decide()
			tt.ticket()

			ticket := tt.gate.Ticket
			tt.cluster.Status.Rollout.Last = &v1alpha1.RolloutResult{Hash: ticket.Hash, Result: v1alpha1.RolloutReturned, Time: metav1.Time{Time: tt.now.Add(2 * time.Hour)}}
			tt.gate.Ticket = nil

			if test.ticket != nil {
				ticket.Since.Time, tt.gate.Ticket = tt.now.Add(*test.ticket), ticket
			}

			tt.decide()

			if end, want := tt.status().Last.Time, tt.now.Add(test.want); !end.Time.Equal(want) {
				t.Errorf("the end is at %s, want %s; it is %s", end, want, tt.now)
			}
		})
	}
}
