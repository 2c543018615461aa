package consent

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// What has begun goes on, whatever becomes of the ticket.
func TestTurnGoesOn(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1", "---\nkind: ControlPlane\n", "patches: [{name: all, inline: {machine: {env: {A: \"1\"}}}}]\n---\nkind: ControlPlane\n")
	tt.decide()
	tt.ticket()

	if d := tt.decide(); len(d.Rollout().Changes) != 2 {
		t.Fatalf("%+v", d.Rollout())
	}

	// Only one of the two was written when the process died.
	d := tt.decide()

	_, err := plan.Apply(t.Context(), tt.omni, d.facts.Plan, plan.ApplyOptions{Admit: func(change plan.Change) bool { return change.Kind == v1alpha1.ChangeKubernetesVersion }})
	if err != nil {
		t.Fatal(err)
	}

	tt.pass(time.Second)
	tt.gate.Turn.Started = tt.now
	tt.gate.Ticket, tt.wait, tt.gate.Turn.Healthy = nil, closed(), false

	if d = tt.run(); len(d.Done()) != 1 || d.Done()[0].Type != "ConfigPatches.omni.sidero.dev" {
		t.Errorf("done: %v", d.Done())
	}

	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")
}

// A turn in which nothing was written passes no window, whatever has become of its changes since.
func TestTurnHasNotBegun(t *testing.T) {
	dies := func(tt *turns) { tt.gate.Turn.Started, tt.settling = tt.now, Settling{} }

	for name, then := range map[string]func(*turns){
		"the process dies, and the settle time of the removal begins anew": dies,
		"the process dies, and the removal needs an approval now": func(tt *turns) {
			dies(tt)
			tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
		},
		"the removal is taken back while Omni does not answer": func(tt *turns) { tt.template = omnitest.FullTemplate; tt.ask("v1.35.0", "v1.36.1") },
		"the version is taken back while Omni does not answer": func(tt *turns) { tt.ask("v1.36.1", "v1.35.0") },
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.cluster.Status.LastSyncTime = &metav1.Time{Time: tt.now.Add(-time.Hour)}
			tt.ask("- "+omnitest.Machine3+"\n", "", "v1.35.0", "v1.36.1")
			tt.decide()
			tt.pass(settleTime)
			tt.decide()
			tt.ticket()
			tt.decide()

			if status := tt.status(); status.State != v1alpha1.RolloutAdmitted || len(status.Changes) != 2 {
				t.Fatalf("%+v", status)
			}

			tt.wait = closed()
			tt.pass(time.Second)
			then(tt)

			if d := tt.decide(); d.HasBegun() {
				t.Error("the turn counts as begun")
			}

			tt.run()
			tt.expect(v1alpha1.RolloutHeld, "1.35.0", v1alpha1.RolloutReturned)
		})
	}
}
