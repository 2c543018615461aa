package consent

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// turns is a cluster under a policy, run after run.
type turns struct {
	t        *testing.T
	omni     state.State
	template string
	cluster  *v1alpha1.OmniCluster
	gate     Gate
	wait     Wait
	now      time.Time
	settling Settling

	documents      string
	joining        Joining
	joinSettleTime time.Duration
}

const settleTime = 10 * time.Second

func newTurns(t *testing.T) *turns {
	t.Helper()

	st := omnitest.NewFakeOmni()
	plantest.Sync(t, st, omnitest.FullTemplate)

	tt := &turns{t: t, omni: st, template: omnitest.FullTemplate, cluster: newCluster(), now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	tt.cluster.UID = "uid-1"
	tt.cluster.Status.Endpoint = "https://omni.example.com"
	tt.gate = Gate{
		Policy: "fleet", Stage: "prod", Place: `OmniRolloutPolicy "fleet", stage "prod" (3 of 3)`, Governed: true,
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Judge: func(v1alpha1.OmniClusterRollout) Wait { return tt.wait },
		Turn:  Turn{Healthy: true, Since: tt.now.Add(-time.Hour), Deadline: 2 * time.Hour, ReadyTime: time.Minute},
	}

	return tt
}

// ask changes the template.
func (tt *turns) ask(oldnew ...string) {
	tt.t.Helper()

	changed := strings.NewReplacer(oldnew...).Replace(tt.template)
	if changed == tt.template {
		tt.t.Fatalf("%v is not in the template", oldnew)
	}

	tt.template = changed
}

// decide decides, and stores what the status says of the turn.
func (tt *turns) decide() Decision {
	tt.t.Helper()

	planned, err := plan.Sync(tt.t.Context(), tt.omni, plantest.Load(tt.t, tt.template), plan.Options{Rollout: true})
	if err != nil {
		tt.t.Fatal(err)
	}

	record := recordOf(planned)
	record.Store(&tt.cluster.Status)

	d := Decide(Facts{
		Cluster: tt.cluster.DeepCopy(), Plan: planned, Gate: tt.gate, Now: tt.now, Settling: tt.settling, SettleTime: settleTime,
		Documents: tt.documents, Joining: tt.joining, JoinSettleTime: tt.joinSettleTime,
	})
	tt.cluster.Status.Rollout, tt.settling, tt.joining = d.Rollout(), d.Settling, d.Joining
	tt.cluster.Status.Refusals = d.Refusals()

	return d
}

// recordOf is the record of an object that made all that Omni has.
func recordOf(planned *plan.Plan) Record {
	record := Record{times: recordTimes{}}
	for _, set := range planned.Live {
		record.sets = append(record.sets, v1alpha1.AppliedMachineSet{ID: set.ID, Size: set.Size, Machines: set.Machines})
	}

	for id, made := range planned.LiveSince {
		record.times[id] = words.StoredTime(made)
	}

	return record
}

// run decides twice, as the status has to be stored before a turn begins, and applies what may be applied.
func (tt *turns) run() Decision {
	tt.t.Helper()

	if d := tt.decide(); !d.Unstored() {
		return tt.apply(d)
	}

	return tt.apply(tt.decide())
}

func (tt *turns) apply(d Decision) Decision {
	tt.t.Helper()

	if !d.HasChangesToTry() {
		return d
	}

	result, err := plan.Apply(tt.t.Context(), tt.omni, d.facts.Plan, plan.ApplyOptions{Consent: d.MayDestroy, Admit: d.Admits})
	if err != nil {
		tt.t.Fatal(err)
	}

	if len(result.Taken()) > 0 {
		tt.cluster.Status.LastSyncTime = &metav1.Time{Time: tt.now}
	}

	return d.After(result, err)
}

// begin changes the template, and makes the change in a turn.
func (tt *turns) begin(oldnew ...string) {
	tt.t.Helper()
	tt.ask(oldnew...)
	tt.decide()
	tt.ticket()
	tt.run()
}

// ticket gives the cluster a ticket for what it asks for.
func (tt *turns) ticket() {
	tt.gate.Ticket = &v1alpha1.RolloutTicket{Cluster: tt.cluster.Name, UID: string(tt.cluster.UID), Stage: tt.gate.Stage, Hash: tt.status().Hash, Since: metav1.Time{Time: tt.now}}
}

// unselect does what the controller does for a cluster that its policy no longer selects.
func (tt *turns) unselect() {
	if !rollout.StillConcerns(tt.cluster.Status.Rollout) {
		tt.gate = Gate{}

		return
	}

	tt.gate.OnlyBefore, tt.wait = true, Wait{Reason: v1alpha1.ReasonLeftPolicy, Message: "x"}
}

// override does what the API server does when somebody overrides what the cluster asks for.
func (tt *turns) override() {
	hash := tt.status().Hash
	tt.cluster.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: hash + " the outage of tonight"}
	tt.cluster.Status.Rollout.Override = &v1alpha1.RolloutOverride{Hash: hash, Reason: "the outage of tonight", User: "alice", Time: metav1.Time{Time: tt.now}}
}

func (tt *turns) status() v1alpha1.OmniClusterRollout { return *tt.cluster.Status.Rollout }

// ending is what a status says of how a turn goes, and how one ended.
type ending struct {
	State   v1alpha1.RolloutState
	Last    v1alpha1.RolloutOutcome
	Failure string // the message
}

func endingOf(status *v1alpha1.OmniClusterRollout) ending {
	if status == nil {
		return ending{}
	}

	found := ending{State: status.State}

	if status.Last != nil {
		found.Last = status.Last.Result
	}

	if status.Failure != nil {
		found.Failure = status.Failure.Message
	}

	return found
}

// says compares what a status says with what it has to say at that moment.
func (tt *turns) says(moment string, status *v1alpha1.OmniClusterRollout, want ending) {
	tt.t.Helper()

	if diff := cmp.Diff(want, endingOf(status)); diff != "" {
		tt.t.Fatalf("%s (-want +got):\n%s", moment, diff)
	}
}

func (tt *turns) pass(d time.Duration) { tt.now = tt.now.Add(d) }

// expect checks the state, the versions that Omni has, and how the last turn ended.
func (tt *turns) expect(state v1alpha1.RolloutState, kubernetes string, last v1alpha1.RolloutOutcome) {
	tt.t.Helper()

	status := tt.status()

	cluster, err := omni.ReadCluster(tt.t.Context(), tt.omni, "demo")
	if err != nil {
		tt.t.Fatal(err)
	}

	var ended v1alpha1.RolloutOutcome
	if status.Last != nil {
		ended = status.Last.Result
	}

	if got := cluster.TypedSpec().Value.GetKubernetesVersion(); status.State != state || got != kubernetes || ended != last {
		tt.t.Errorf("state %q, Kubernetes %s, last %q; want %q, %s, %q (%+v)", status.State, got, ended, state, kubernetes, last, status)
	}
}

func closed() Wait { return Wait{Reason: v1alpha1.ReasonOutsideWindow, Message: "until Sat"} }
