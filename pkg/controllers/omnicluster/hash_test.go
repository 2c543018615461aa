package omnicluster

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestHashToApprove(t *testing.T) {
	asked, theirs, other := teardown("asked", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0)), teardown("other", time.Unix(0, 0))
	begun := teardown("begun", time.Unix(0, 0))
	begun.TearingDown = true
	harmless := plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "p"}
	list := func(changes ...plan.Change) []plan.Change { return changes }

	for name, test := range map[string]struct {
		left, requested, unasked, want []plan.Change
	}{
		"nothing":                      {},
		"nothing destructive":          {left: list(harmless)},
		"what needs approval":          {left: list(harmless, asked, theirs), unasked: list(theirs), want: list(theirs)},
		"nothing needs approval":       {left: list(asked, harmless), want: list(asked)},
		"all of it":                    {left: list(theirs, other), unasked: list(theirs, other), want: list(other, theirs)},
		"some was done":                {left: list(other), unasked: list(theirs, other), want: list(other)},
		"some was requested":           {left: list(asked, theirs), requested: list(asked), unasked: list(theirs), want: list(theirs)},
		"everything was requested":     {left: list(asked, theirs), requested: list(asked, theirs)},
		"requested by an earlier run":  {left: list(begun)},
		"what is left after a refusal": {left: list(asked, other), requested: list(asked), want: list(other)},
	} {
		t.Run(name, func(t *testing.T) {
			got := hashToApprove(test.left, test.requested, needsApproval(&scope{unasked: test.unasked}))
			if got != plan.HashOf(test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A hash that was shown approves what needed approval then, also when the rest of the plan is done.
func TestApproveByTheHashOfWhatNeedsIt(t *testing.T) {
	asked, theirs, later := teardown("asked", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0)), teardown("later", time.Unix(0, 0))
	hash := plan.HashOf([]plan.Change{theirs})

	for name, test := range map[string]struct {
		plan     *plan.Plan
		unasked  []plan.Change
		approved bool
	}{
		"beside what was asked for":   {planned(asked, theirs), []plan.Change{theirs}, true},
		"alone":                       {planned(theirs), []plan.Change{theirs}, true},
		"beside something new":        {planned(later, theirs), []plan.Change{later, theirs}, false},
		"another policy asks for all": {planned(asked, theirs), []plan.Change{asked, theirs}, false},
		"it is gone":                  {planned(asked), nil, true}, // nothing is left to approve
	} {
		t.Run(name, func(t *testing.T) {
			approved, remember := approve(hash, test.plan, test.unasked, nil)
			if approved != test.approved {
				t.Errorf("approved: %v", approved)
			}

			for _, one := range remember {
				if one.ID != "theirs" {
					t.Errorf("remembers %v", one)
				}
			}
		})
	}
}

var commandHash = regexp.MustCompile(`"approvedPlan":"([0-9a-f]{64})"`)

// Whatever hash somebody copies from the status or a message, at any moment,
// approves what waits.
func TestEveryShownHashApproves(t *testing.T) {
	for name, copies := range map[string]func(b *bench) string{
		"while the rest settles": func(b *bench) string {
			return b.until("Synced", metav1.ConditionFalse, "WaitingToSettle").Status.Plan.Hash
		},
		"from the message while the rest settles": func(b *bench) string {
			return hashIn(b.t, message(b.until("Synced", metav1.ConditionFalse, "WaitingToSettle"), "Synced"))
		},
		"from the status of the run that did the rest": func(b *bench) string {
			b.settleTheRest()

			return b.get().Status.Plan.Hash
		},
		"from the message of the run that did the rest": func(b *bench) string {
			b.settleTheRest()

			return hashIn(b.t, message(b.get(), "Synced"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := running(t)
			b.setByHand("by-hand", b.machines[1])
			b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
			b.delete(newWorkers("w", machineClass, 2))
			b.eventually("both to be planned", func() string {
				b.run()

				return map[bool]string{false: message(b.get(), "Synced")}[b.get().Status.Plan.Destructive == 2]
			})

			hash := copies(b)
			b.settleTheRest()
			b.wantTornDown("MachineSets demo-w")
			b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })
			b.eventually("the set made by hand to go", func() string {
				b.run()

				if said := message(b.get(), "Synced"); strings.Contains(said, "approves another plan") {
					t.Fatal(said)
				}

				return map[bool]string{true: "it is there"}[b.view().Machines["demo-by-hand"] > 0]
			})
			b.until("Ready", metav1.ConditionTrue, "Running")
			b.quiet()
		})
	}
}

// settleTheRest lets the settle time pass, and runs until what was asked for is requested.
func (b *bench) settleTheRest() {
	b.t.Helper()
	b.advance(settleTime)
	b.eventually("the document's set to go", func() string {
		if len(b.tornDown()) > 0 {
			return ""
		}

		b.run()

		return map[bool]string{true: "nothing is torn down"}[len(b.tornDown()) == 0]
	})
}

func hashIn(t *testing.T, text string) string {
	t.Helper()

	found := commandHash.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no command in: %s", text)
	}

	return found[1]
}
