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
	for name, copies := range map[string]func(f *fixture) string{
		"while the rest settles": func(f *fixture) string {
			return f.until("Synced", metav1.ConditionFalse, "WaitingToSettle").Status.Plan.Hash
		},
		"from the message while the rest settles": func(f *fixture) string {
			return hashIn(f.t, message(f.until("Synced", metav1.ConditionFalse, "WaitingToSettle"), "Synced"))
		},
		"from the status of the run that did the rest": func(f *fixture) string {
			f.settleTheRest()

			return f.get().Status.Plan.Hash
		},
		"from the message of the run that did the rest": func(f *fixture) string {
			f.settleTheRest()

			return hashIn(f.t, message(f.get(), "Synced"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.setByHand("by-hand", f.machines[1])
			f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
			f.delete(newWorkers("w", machineClass, 2))
			f.eventually("both to be planned", func() string {
				f.run()

				return map[bool]string{false: message(f.get(), "Synced")}[f.get().Status.Plan.Destructive == 2]
			})

			hash := copies(f)
			f.settleTheRest()
			f.wantTornDown("MachineSets demo-w")
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })
			f.eventually("the set made by hand to go", func() string {
				f.run()

				if said := message(f.get(), "Synced"); strings.Contains(said, "approves another plan") {
					t.Fatal(said)
				}

				return map[bool]string{true: "it is there"}[f.view().Machines["demo-by-hand"] > 0]
			})
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

// settleTheRest lets the settle time pass, and runs until what was asked for is requested.
func (f *fixture) settleTheRest() {
	f.t.Helper()
	f.advance(settleTime)
	f.eventually("the document's set to go", func() string {
		if len(f.tornDown()) > 0 {
			return ""
		}

		f.run()

		return map[bool]string{true: "nothing is torn down"}[len(f.tornDown()) == 0]
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
