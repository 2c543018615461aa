package omnicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// A plan that waits is shown in the status, and a second run writes nothing.
// A cluster with our mark at another endpoint, whose ID Omni has not told yet, may be another one: where ours was seen last
// is what keeps it from being taken for ours.
func TestEndpointIsKeptUntilTheIDIsTold(t *testing.T) {
	for name, test := range map[string]struct{ live, want string }{
		"not told":  {"", "https://a"},
		"the same":  {"id-1", "https://b"},
		"not ours:": {"id-2", "https://a"},
	} {
		cluster := newCluster()
		cluster.UID, cluster.Status.OmniClusterID, cluster.Status.Endpoint = "uid-1", "id-1", "https://a"
		s := &scope{
			cluster: cluster, name: "demo", remote: &observe.Status{Exists: true}, hubs: hubs.Hubs{Own: "hub-1"},
			seen:       &seen{live: omni.Live{Exists: true, UUID: test.live, Marks: omni.Marks{UID: "uid-1", Hub: "hub-1"}}},
			connection: &v1alpha1.OmniConnection{Spec: v1alpha1.OmniConnectionSpec{Endpoint: "https://b"}},
		}

		(&reconciler{}).reportRemote(t.Context(), s, claimOf(s))

		if got := cluster.Status.Endpoint; got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A connection that leads elsewhere does not show whose the cluster is that was seen before: another hub has seen that, not this one.
func TestHubIsKeptWhereTheClusterIsNotSeen(t *testing.T) {
	for name, test := range map[string]struct {
		live omni.Live
		want string
	}{
		"it is not there":     {omni.Live{}, "hub-2"},
		"another one":         {omni.Live{Exists: true, UUID: "id-2"}, "hub-2"},
		"the ID says it is":   {omni.Live{Exists: true, UUID: "id-1"}, "hub-1"},
		"the mark says it is": {omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-1"}}, "hub-1"},
	} {
		cluster := newCluster()
		cluster.UID, cluster.Status.OmniClusterID, cluster.Status.Endpoint, cluster.Status.HubID = "uid-1", "id-1", "https://a", "hub-2"
		s := &scope{
			cluster: cluster, name: "demo", hubs: hubs.Hubs{Own: "hub-1"}, seen: &seen{live: test.live},
			connection: &v1alpha1.OmniConnection{Spec: v1alpha1.OmniConnectionSpec{Endpoint: "https://b"}},
		}

		reportHubs(s, claimOf(s))

		if got := cluster.Status.HubID; got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What is known of a control plane outlasts it, and is not that of another cluster.
func TestControlPlaneIsKeptWhenItIsGone(t *testing.T) {
	lost := &v1alpha1.ControlPlaneSet{Created: metav1.Unix(1700000000, 0), Backup: "id/a"}
	made := &v1alpha1.ControlPlaneSet{Created: metav1.Unix(1800000000, 0)}

	for name, test := range map[string]struct {
		id     string
		remote []observe.MachineSet
		want   *v1alpha1.ControlPlaneSet
	}{
		"gone":                              {"id-1", []observe.MachineSet{{Name: "w", Created: made.Created.Time}}, lost},
		"made again":                        {"id-1", []observe.MachineSet{{ControlPlane: true, Created: made.Created.Add(time.Millisecond)}}, made},
		"Omni does not tell the ID":         {"", nil, lost},
		"another cluster":                   {"id-2", nil, nil},
		"another cluster and control plane": {"id-2", []observe.MachineSet{{ControlPlane: true, Created: made.Created.Time}}, made},
	} {
		cluster := newCluster()
		cluster.Status.OmniClusterID, cluster.Status.ControlPlaneSet = "id-1", lost
		live := omni.Live{Exists: true, UUID: test.id, Marks: omni.Marks{UID: string(cluster.UID), Hub: testHub}}
		s := &scope{
			cluster: cluster, name: "demo", hubs: hubs.Hubs{Own: testHub}, seen: &seen{live: live}, plan: &plan.Plan{},
			connection: &v1alpha1.OmniConnection{}, remote: &observe.Status{Exists: true, MachineSets: test.remote},
		}

		(&reconciler{}).reportRemote(t.Context(), s, claimOf(s))

		if diff := cmp.Diff(test.want, cluster.Status.ControlPlaneSet); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPlanIsShownAsText(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
	})
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 1 })

	cluster := f.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	plan := cluster.Status.Plan

	const head = "# update MachineSet \"demo-w\" (pool/2 -> pool/1): lowers its machine count (destructive)\n@@ "
	if !strings.HasPrefix(plan.Diff, head) || !strings.Contains(plan.Diff, "-    machineCount: 2\n+    machineCount: 1\n") {
		t.Errorf("diff:\n%s", plan.Diff)
	}

	if plan.Destructive != 1 || len(plan.Changes) != 1 || !plan.Changes[0].NeedsApproval {
		t.Errorf("plan %+v", plan)
	}

	f.quiet()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if plan := f.get().Status.Plan; plan.Diff != "" || plan.Destructive != 0 || len(plan.Changes) != 0 {
		t.Errorf("a plan that is done: %+v", plan)
	}
}
