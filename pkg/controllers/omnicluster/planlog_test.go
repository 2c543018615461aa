package omnicluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

// A plan that is too long for the status can be read in the log of each process, also of one that finds it waiting: once, until
// it changes. It is logged with the hash by which it is approved.
func TestEachProcessLogsAPlanOnce(t *testing.T) {
	removal := func(count int) *plan.Plan {
		made := &plan.Plan{}
		for i := range count {
			made.Changes = append(made.Changes, plan.Change{Action: plan.ActionDestroy, Type: "MachineSetNodes.omni.sidero.dev", ID: fmt.Sprintf("machine-%04d", i), Destructive: true, Reason: "removes a machine"})
		}

		return made
	}

	var lines []string

	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: planVerbosity, MaxLogDepth: 4})
	ctx := log.IntoContext(t.Context(), logger)

	long, longer := removal(300), removal(301)
	cluster := newCluster()
	cluster.Status.Plan = &v1alpha1.OmniClusterPlan{Diff: plan.BoundedDiff(long.Diff(long.Changes))} // by an earlier process

	if !strings.Contains(cluster.Status.Plan.Diff, "are left out") {
		t.Fatal("the plan is not too long")
	}

	r := &reconciler{options: Options{Objects: metrics.NewObjects()}}

	for i, step := range []struct {
		plan *plan.Plan
		want string // the last machine of the plan that is logged; empty for nothing
	}{
		{long, "machine-0299"}, {long, ""}, {long, ""}, {longer, "machine-0300"}, {longer, ""}, {long, "machine-0299"},
		{&plan.Plan{}, ""}, {long, "machine-0299"}, {long, ""},
	} {
		lines = nil
		r.logPlan(ctx, &scope{cluster: cluster, plan: step.plan, synced: &synced{Decision: consent.Decide(consent.Facts{Cluster: cluster, Plan: step.plan})}})

		if step.want == "" && len(lines) == 0 {
			continue
		}

		if len(lines) != 1 || step.want == "" || !strings.Contains(lines[0], step.want) || !strings.Contains(lines[0], `"hash"=`) {
			t.Errorf("run %d: %d lines, want %q", i, len(lines), step.want)
		}
	}

	// What is kept is a few bytes for each cluster, and goes with it.
	name := client.ObjectKeyFromObject(cluster)
	if r.kind().Gone(name); len(r.processStates.entries) != 0 {
		t.Errorf("%d entries are left", len(r.processStates.entries))
	}
}
