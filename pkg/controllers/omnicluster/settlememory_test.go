package omnicluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestSettleMemoryForgets(t *testing.T) {
	memory := newSettleMemory()
	name := types.NamespacedName{Namespace: "team", Name: "demo"}
	cluster := newCluster()
	cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "demo-w"}}
	settling := consent.Decide(consent.Facts{
		Cluster: cluster, SettleTime: time.Second, Plan: &plan.Plan{
			Changes: []plan.Change{{Action: plan.ActionDestroy, Type: plan.TypeMachineSet, ID: "demo-w", Set: "demo-w", Destructive: true}},
		},
	}).Settling

	memory.keep(name, settling)

	if len(memory.entries) != 1 || memory.of(name).Empty() {
		t.Fatal(memory.entries)
	}

	memory.forget(name)
	memory.keep(types.NamespacedName{Name: "calm"}, consent.Settling{})

	if len(memory.entries) != 0 {
		t.Error(memory.entries)
	}
}
