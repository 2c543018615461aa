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
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// restOfAnApprovedPlan is a suspended cluster whose approved plan was to destroy
// two sets. One of them is gone since, so that only the status knows of the consent
// for the other one.
func restOfAnApprovedPlan(t *testing.T) *bench {
	t.Helper()

	b := listedSet(t)
	b.setByHand("by-hand")
	b.eventually("both sets to wait", func() string {
		b.run()

		return map[bool]string{false: message(b.get(), "Ready")}[b.get().Status.Plan.Destructive == 2]
	})
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, o.Status.Plan.Hash })
	b.run()

	err := b.omni.State().TeardownAndDestroy(t.Context(), omnires.NewMachineSet("demo-by-hand").Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	b.eventually("one approved set to be left", func() string {
		b.run()

		plan := b.get().Status.Plan

		return map[bool]string{false: fmt.Sprintf("%+v", plan)}[len(plan.Approved) == 1 && plan.Destructive == 1]
	})

	return b
}

// loseControlPlane makes the documents not fit together for a moment: there is no
// plan then.
func (b *bench) loseControlPlane() {
	b.t.Helper()
	b.delete(newControlPlane("cp", b.machines[0]))
	b.until("Assembled", metav1.ConditionFalse, "")
}

// An approval outlasts runs that cannot make a plan.
func TestApprovalOutlastsRunsWithoutAPlan(t *testing.T) {
	b := restOfAnApprovedPlan(t)
	b.loseControlPlane()

	if plan := b.get().Status.Plan; consent.IsPlan(plan) || len(plan.Approved) != 1 {
		t.Errorf("plan %+v", plan)
	}

	b.create(newControlPlane("cp", b.machines[0]))
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("MachineSets demo-w")
}

// Whoever empties spec.approvedPlan takes it back, also while there is no plan.
func TestApprovalTakenBackWithoutAPlan(t *testing.T) {
	b := restOfAnApprovedPlan(t)
	hash := b.get().Spec.ApprovedPlan
	b.loseControlPlane()
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "" })
	b.run()

	if plan := b.get().Status.Plan; plan != nil {
		t.Errorf("plan %+v", plan)
	}

	b.create(newControlPlane("cp", b.machines[0]))
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = false, hash })
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.wantTornDown()
}

// The status says what was approved before any of it is done: a process that ends
// in the middle leaves the rest approved.
func TestApprovalIsWrittenBeforeItIsUsed(t *testing.T) {
	b := listedSet(t)
	written := false
	b.client = interceptor.NewClient(b.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if cluster, ok := o.(*v1alpha1.OmniCluster); ok && len(b.tornDown()) == 0 {
				written = written || cluster.Status.Plan != nil && len(cluster.Status.Plan.Approved) == 1
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.restart()
	b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("MachineSets demo-w")

	if !written {
		t.Error("the approval was used before it was written")
	}
}
