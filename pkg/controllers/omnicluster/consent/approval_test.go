package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestApprove(t *testing.T) {
	created := time.Unix(1700000000, 123456789)
	a, b := teardown("a", created), teardown("b", created)
	begun := b
	begun.TearingDown = true
	again := teardown("a", created.Add(time.Hour))

	changed := a
	changed.Version = "8"

	wantedAgain := a
	wantedAgain.Destructive = false

	joined := a
	joined.Members = "with one more machine"

	shrink := plan.Change{Action: plan.ActionUpdate, Type: "MachineSets.omni.sidero.dev", ID: "a", Destructive: true, OldSize: "pool/5", NewSize: "pool/4"}
	further := shrink
	further.NewSize = "pool/1"

	approvalA := v1alpha1.ApprovedChange{
		Type: "MachineSets.omni.sidero.dev", ID: "a", OldSize: "3", Created: &metav1.Time{Time: time.Unix(1700000000, 0).UTC()},
	}
	approvalB := approvalA
	approvalB.ID = "b"
	approvalChanged := approvalA
	approvalChanged.Version = "8"

	for name, test := range map[string]struct {
		approvedPlan string
		plan         *plan.Plan
		remembered   []v1alpha1.ApprovedChange
		approved     bool
		remember     []v1alpha1.ApprovedChange
	}{
		"nothing destructive":                 {"", planned(), nil, false, nil},
		"not approved":                        {"", planned(a), nil, false, nil},
		"another plan was approved":           {"other", planned(a), nil, false, nil},
		"approved":                            {"the-hash", planned(a, b), nil, true, []v1alpha1.ApprovedChange{approvalA, approvalB}},
		"what is left of an approved plan":    {"older", planned(a, begun), []v1alpha1.ApprovedChange{approvalA, approvalB}, true, []v1alpha1.ApprovedChange{approvalA, approvalB}},
		"what is done is forgotten":           {"older", planned(a), []v1alpha1.ApprovedChange{approvalA, approvalB}, true, []v1alpha1.ApprovedChange{approvalA}},
		"all done":                            {"older", planned(), []v1alpha1.ApprovedChange{approvalA, approvalB}, false, nil},
		"something new":                       {"older", planned(a, b), []v1alpha1.ApprovedChange{approvalA}, false, []v1alpha1.ApprovedChange{approvalA}},
		"made again since":                    {"older", planned(again), []v1alpha1.ApprovedChange{approvalA}, false, nil},
		"changed in Omni since":               {"older", planned(changed), []v1alpha1.ApprovedChange{approvalA}, false, nil},
		"a machine joined it since":           {"older", planned(joined), []v1alpha1.ApprovedChange{approvalA}, false, nil},
		"to a size that was approved":         {"older", planned(shrink), approvalsOf([]plan.Change{shrink}), true, approvalsOf([]plan.Change{shrink})},
		"to a smaller size than was approved": {"older", planned(further), approvalsOf([]plan.Change{shrink}), false, nil},
		"nothing is destroyed any more":       {"older", planned(wantedAgain), []v1alpha1.ApprovedChange{approvalA}, false, nil},
		"an empty approval approves nothing": {
			"", &plan.Plan{Changes: []plan.Change{a}}, nil, false, nil,
		},
		"approved as it is now": {"older", planned(changed), []v1alpha1.ApprovedChange{approvalChanged}, true, []v1alpha1.ApprovedChange{approvalChanged}},
		"taken back":            {"", planned(a, b), []v1alpha1.ApprovedChange{approvalA, approvalB}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			approved, remember := approve(test.approvedPlan, "", test.plan, test.plan.Destructive(), test.remembered)
			if approved != test.approved {
				t.Errorf("approved: %v", approved)
			}

			if diff := cmp.Diff(test.remember, remember); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A hash that was shown approves what needed approval then, also when the rest of the plan is done.
func TestApproveByTheHashOfWhatNeedsIt(t *testing.T) {
	asked, theirs, later := teardown("asked", time.Unix(0, 0)), teardown("theirs", time.Unix(0, 0)), teardown("later", time.Unix(0, 0))
	hash := plan.HashOf([]plan.Change{theirs})

	for name, test := range map[string]struct {
		plan         *plan.Plan
		needApproval []plan.Change
		approved     bool
	}{
		"beside what was asked for":   {planned(asked, theirs), []plan.Change{theirs}, true},
		"alone":                       {planned(theirs), []plan.Change{theirs}, true},
		"beside something new":        {planned(later, theirs), []plan.Change{later, theirs}, false},
		"another policy asks for all": {planned(asked, theirs), []plan.Change{asked, theirs}, false},
		"it is gone":                  {planned(asked), nil, true}, // nothing is left to approve
	} {
		t.Run(name, func(t *testing.T) {
			approved, remember := approve(hash, "", test.plan, test.needApproval, nil)
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

// Approvals outlast runs without a plan, and are all that is kept of one.
func TestApprovalsWithoutAPlan(t *testing.T) {
	approved := approvalsOf([]plan.Change{teardown("a", time.Unix(0, 0))})

	for name, test := range map[string]struct {
		plan    *v1alpha1.OmniClusterPlan
		isPlan  bool
		kept    *v1alpha1.OmniClusterPlan
		without *v1alpha1.OmniClusterPlan // after ForgetApprovals
	}{
		"none":                   {nil, false, nil, nil},
		"a plan":                 {&v1alpha1.OmniClusterPlan{Hash: "h", Creates: 1}, true, nil, &v1alpha1.OmniClusterPlan{Hash: "h", Creates: 1}},
		"approvals":              {&v1alpha1.OmniClusterPlan{Approved: approved}, false, &v1alpha1.OmniClusterPlan{Approved: approved}, nil},
		"a plan, partly allowed": {&v1alpha1.OmniClusterPlan{Destructive: 1, Approved: approved}, true, &v1alpha1.OmniClusterPlan{Approved: approved}, &v1alpha1.OmniClusterPlan{Destructive: 1}},
	} {
		status := v1alpha1.OmniClusterStatus{Plan: test.plan}
		if got := status.Plan.IsPlan(); got != test.isPlan {
			t.Errorf("%s: is a plan: %v", name, got)
		}

		if diff := cmp.Diff(test.kept, KeepApprovals(status)); diff != "" {
			t.Errorf("%s: kept: %s", name, diff)
		}

		if ForgetApprovals(&status); !cmp.Equal(test.without, status.Plan) {
			t.Errorf("%s: %s", name, cmp.Diff(test.without, status.Plan))
		}
	}
}
