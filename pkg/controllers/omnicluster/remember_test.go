package omnicluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// restOfAnApprovedPlan is a suspended cluster whose approved plan was to destroy
// two sets. One of them is gone since, so that only the status knows of the consent
// for the other one.
func restOfAnApprovedPlan(t *testing.T) *fixture {
	t.Helper()

	f := listedSet(t)
	f.setByHand("by-hand")
	f.eventually("both sets to wait", func() string {
		f.run()

		return map[bool]string{false: message(f.get(), "Ready")}[f.get().Status.Plan.Destructive == 2]
	})
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, o.Status.Plan.Hash })
	f.run()

	err := f.omni.State().TeardownAndDestroy(t.Context(), omnires.NewMachineSet("demo-by-hand").Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	f.eventually("one approved set to be left", func() string {
		f.run()

		plan := f.get().Status.Plan

		return map[bool]string{false: fmt.Sprintf("%+v", plan)}[len(plan.Approved) == 1 && plan.Destructive == 1]
	})

	return f
}

// loseControlPlane makes the documents not fit together for a moment: there is no
// plan then.
func (f *fixture) loseControlPlane() {
	f.t.Helper()
	f.delete(newControlPlane("cp", f.machines[0]))
	f.until("Assembled", metav1.ConditionFalse, "")
}

// An approval outlasts runs that cannot make a plan.
func TestApprovalOutlastsRunsWithoutAPlan(t *testing.T) {
	f := restOfAnApprovedPlan(t)
	f.loseControlPlane()

	if plan := f.get().Status.Plan; plan.IsPlan() || len(plan.Approved) != 1 {
		t.Errorf("plan %+v", plan)
	}

	f.create(newControlPlane("cp", f.machines[0]))
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-w")
}

// Whoever empties spec.approvedPlan takes it back, also while there is no plan.
func TestApprovalTakenBackWithoutAPlan(t *testing.T) {
	f := restOfAnApprovedPlan(t)
	hash := f.get().Spec.ApprovedPlan
	f.loseControlPlane()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "" })
	f.run()

	if plan := f.get().Status.Plan; plan != nil {
		t.Errorf("plan %+v", plan)
	}

	f.create(newControlPlane("cp", f.machines[0]))
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = false, hash })
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.wantTornDown()
}

// The status says what was approved before any of it is done: a process that ends
// in the middle leaves the rest approved.
func TestApprovalIsWrittenBeforeItIsUsed(t *testing.T) {
	f := listedSet(t)
	written := false
	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if cluster, ok := o.(*v1alpha1.OmniCluster); ok && len(f.tornDown()) == 0 {
				written = written || cluster.Status.Plan != nil && len(cluster.Status.Plan.Approved) == 1
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	f.restart()
	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-w")

	if !written {
		t.Error("the approval was used before it was written")
	}
}
