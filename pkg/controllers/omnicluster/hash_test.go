package omnicluster

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
