package child

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

func metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 2}
}

func gone(metadata metav1.ObjectMeta) metav1.ObjectMeta {
	metadata.DeletionTimestamp = &metav1.Time{}
	metadata.DeletionTimestamp.Time = metadata.DeletionTimestamp.AddDate(2000, 0, 0)
	metadata.Finalizers = []string{"example.com/other"}

	return metadata
}

var demo = v1alpha1.LocalObjectReference{Name: "demo"}

func newControlPlane(name string, machines ...string) v1alpha1.OmniControlPlane {
	return v1alpha1.OmniControlPlane{ObjectMeta: metadata(name), Spec: v1alpha1.OmniControlPlaneSpec{
		ClusterRef: demo, MachineSetMachines: v1alpha1.MachineSetMachines{Machines: machines},
	}}
}

func newWorkers(name, set string, machines ...string) v1alpha1.OmniWorkers {
	return v1alpha1.OmniWorkers{ObjectMeta: metadata(name), Spec: v1alpha1.OmniWorkersSpec{
		ClusterRef: demo, WorkerSetName: set, MachineSetMachines: v1alpha1.MachineSetMachines{Machines: machines},
	}}
}

func newMachine(name, id string) v1alpha1.OmniMachine {
	return v1alpha1.OmniMachine{ObjectMeta: metadata(name), Spec: v1alpha1.OmniMachineSpec{ClusterRef: demo, MachineID: id}}
}

func check(t *testing.T, got loop.Outcome, goesOn, stalls bool, reason string, texts ...string) {
	t.Helper()

	if got.Continues() != goesOn || got.Stalls() != stalls || got.Reason() != reason {
		t.Errorf("continues %v, stalls %v, %s: %s", got.Continues(), got.Stalls(), got.Reason(), got.Message())
	}

	for _, text := range texts {
		if !strings.Contains(got.Message(), text) {
			t.Errorf("message %q does not say %q", got.Message(), text)
		}
	}
}

func TestAcceptControlPlane(t *testing.T) {
	one, two := newControlPlane("one"), newControlPlane("two")
	leaving := newControlPlane("leaving")
	leaving.ObjectMeta = gone(leaving.ObjectMeta)

	check(t, acceptControlPlane(&one, newSiblings([]v1alpha1.OmniControlPlane{one}, nil, nil)), true, false, "AcceptedByCluster", "demo")
	check(t, acceptControlPlane(&one, newSiblings([]v1alpha1.OmniControlPlane{one, leaving}, nil, nil)), true, false, "AcceptedByCluster")
	check(t, acceptControlPlane(&one, newSiblings([]v1alpha1.OmniControlPlane{one, two}, nil, nil)), false, true, "Conflicting", `"two"`)
}

func TestAcceptWorkers(t *testing.T) {
	a, b, c := newWorkers("a", ""), newWorkers("b", "a"), newWorkers("c", "")
	leaving := newWorkers("leaving", "a")
	leaving.ObjectMeta = gone(leaving.ObjectMeta)

	check(t, acceptWorkers(&a, newSiblings(nil, []v1alpha1.OmniWorkers{a, c, leaving}, nil)), true, false, "AcceptedByCluster")
	check(t, acceptWorkers(&a, newSiblings(nil, []v1alpha1.OmniWorkers{a, b, c}, nil)), false, true, "Conflicting", `"b"`, `"a"`)
}

func TestAcceptMachine(t *testing.T) {
	m, twin := newMachine("m", "id-1"), newMachine("twin", "id-1")
	inControlPlane := newSiblings([]v1alpha1.OmniControlPlane{newControlPlane("cp", "id-1")}, nil, []v1alpha1.OmniMachine{m})
	inWorkers := newSiblings(nil, []v1alpha1.OmniWorkers{newWorkers("w", "", "id-0", "id-1")}, []v1alpha1.OmniMachine{m})
	nowhere := newSiblings([]v1alpha1.OmniControlPlane{newControlPlane("cp", "id-2")}, nil, []v1alpha1.OmniMachine{m})
	twice := newSiblings([]v1alpha1.OmniControlPlane{newControlPlane("cp", "id-1")}, nil, []v1alpha1.OmniMachine{m, twin})
	leaving := newControlPlane("cp", "id-1")
	leaving.ObjectMeta = gone(leaving.ObjectMeta)

	check(t, acceptMachine(&m, inControlPlane), true, false, "AcceptedByCluster")
	check(t, acceptMachine(&m, inWorkers), true, false, "AcceptedByCluster")
	check(t, acceptMachine(&m, nowhere), false, false, "NotListed", "id-1", "demo")
	check(t, acceptMachine(&m, newSiblings([]v1alpha1.OmniControlPlane{leaving}, nil, []v1alpha1.OmniMachine{m})), false, false, "NotListed")
	check(t, acceptMachine(&m, twice), false, true, "Conflicting", `"twin"`)
}

func TestJudgeSynced(t *testing.T) {
	object := newWorkers("w", "")
	cluster := &v1alpha1.OmniCluster{ObjectMeta: metadata("demo")}
	suspended := cluster.DeepCopy()
	suspended.Spec.Suspend = true

	ref := func(uid string, generation int64) []v1alpha1.AppliedReference {
		return []v1alpha1.AppliedReference{{Name: "other", UID: "uid-other", Generation: 2}, {Name: "w", UID: uid, Generation: generation}}
	}

	check(t, judgeSynced(&object, cluster, ref("uid-w", 2)), true, false, "Applied")
	check(t, judgeSynced(&object, cluster, ref("uid-w", 1)), false, false, "WaitingForSync", "demo")
	check(t, judgeSynced(&object, cluster, ref("uid-before", 2)), false, false, "WaitingForSync")
	check(t, judgeSynced(&object, cluster, nil), false, false, "WaitingForSync")
	check(t, judgeSynced(&object, suspended, nil), false, false, "ClusterOnHold", "suspended")
	check(t, judgeSynced(&object, suspended, ref("uid-w", 2)), true, false, "Applied")
}

// A new document keeps its first status while its cluster is about to apply it, and for no other reason.
func TestUntilFirstApply(t *testing.T) {
	const age = 10 * time.Second

	created := metav1.NewTime(time.Date(2026, 11, 25, 4, 0, 0, 0, time.UTC))
	waiting := loop.Wait(0, v1alpha1.ReasonWaitingForSync, "not yet")
	cluster := func(observed int64, conditions ...string) *v1alpha1.OmniCluster {
		found := &v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{ReconcileStatus: v1alpha1.ReconcileStatus{ObservedGeneration: observed}}}
		for _, one := range conditions {
			found.Status.Conditions = append(found.Status.Conditions, metav1.Condition{Type: one, Status: metav1.ConditionTrue})
		}

		return found
	}

	plannedAt := func(after time.Duration) *v1alpha1.OmniCluster {
		found := cluster(1, "Planned")
		found.Status.Conditions[0].LastTransitionTime = metav1.NewTime(created.Add(after))

		return found
	}

	for name, test := range map[string]struct {
		observed int64
		cluster  *v1alpha1.OmniCluster
		synced   loop.Outcome
		age      time.Duration
		want     time.Duration
	}{
		"the cluster was never looked at":      {-1, cluster(-1), waiting, time.Hour, queueTime},
		"it is about to apply":                 {-1, cluster(1, "Planned"), waiting, age, firstApplyTime - age},
		"it is, after a long queue":            {-1, plannedAt(time.Hour), waiting, time.Hour + age, firstApplyTime - age},
		"it is, for too long after it":         {-1, plannedAt(time.Hour), waiting, time.Hour + firstApplyTime, 0},
		"it was planned before the document":   {-1, plannedAt(-time.Hour), waiting, age, firstApplyTime - age},
		"it is, for too long":                  {-1, cluster(1, "Planned"), waiting, firstApplyTime, 0},
		"it cannot plan":                       {-1, cluster(1), waiting, age, 0},
		"it is stalled":                        {-1, cluster(1, "Planned", "Stalled"), waiting, age, 0},
		"the clock of the API server is ahead": {-1, cluster(1, "Planned"), waiting, -age, 0},
		"the document has shown something":     {1, cluster(-1), waiting, age, 0},
		"there is another reason to wait":      {-1, cluster(-1), loop.Wait(0, v1alpha1.ReasonClusterOnHold, "suspended"), age, 0},
		"Omni has it":                          {-1, cluster(1, "Planned"), loop.Continue(v1alpha1.ReasonApplied, ""), age, 0},
		"Omni refuses it":                      {-1, cluster(1, "Planned"), loop.Stall(v1alpha1.ReasonRefused, "no"), age, 0},
	} {
		t.Run(name, func(t *testing.T) {
			object := newWorkers("w", "")
			object.CreationTimestamp, object.Status.ObservedGeneration = created, test.observed

			if got := untilFirstApply(&object, test.cluster, test.synced, created.Add(test.age)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A document says what its cluster waits for, in the reason that Argo CD's script takes for a wait on purpose.
func TestJudgeSyncedOnHold(t *testing.T) {
	object := newWorkers("w", "")
	stalled := func(status metav1.ConditionStatus, reason string) *v1alpha1.OmniCluster {
		return &v1alpha1.OmniCluster{ObjectMeta: metadata("demo"), Status: v1alpha1.OmniClusterStatus{ReconcileStatus: v1alpha1.ReconcileStatus{
			Conditions: []metav1.Condition{{Type: "Stalled", Status: status, Reason: reason}},
		}}}
	}

	check(t, judgeSynced(&object, stalled("True", "AwaitingApproval"), nil), false, false, "ClusterOnHold", "demo", "approval")
	check(t, judgeSynced(&object, stalled("True", "Observing"), nil), false, false, "ClusterOnHold", "demo", "changePolicy")
	check(t, judgeSynced(&object, stalled("True", "NotOwned"), nil), false, false, "WaitingForSync", "demo")
	check(t, judgeSynced(&object, stalled("False", "AwaitingApproval"), nil), false, false, "WaitingForSync", "demo")
}

func TestJudgeSet(t *testing.T) {
	of := func(sets ...v1alpha1.MachineSetStatus) *v1alpha1.OmniCluster {
		return &v1alpha1.OmniCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "demo"},
			Status:     v1alpha1.OmniClusterStatus{Omni: &v1alpha1.OmniClusterRemoteStatus{MachineSets: sets}},
		}
	}
	machines := v1alpha1.MachineCounts{Total: 3, Healthy: 2, Requested: 3}

	check(t, judgeSet(&v1alpha1.OmniCluster{}, "w"), false, false, "MachinesNotReady", `"w"`)
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "x", Ready: true}), "w"), false, false, "MachinesNotReady")
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w", Phase: "ScalingUp", Machines: machines}), "w"), false, false, "MachinesNotReady", "2 of 3", "ScalingUp", "3 not connected", "registered",
		`its provider makes them (see the condition Available of OmniCluster "demo")`)
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w"}), "w"), false, false, "MachinesNotReady", "no phase")
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w", Ready: true, Machines: machines}), "w"), true, false, "MachinesReady")
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w", Ready: true, Machines: machines, LockedUpdates: 2}), "w"),
		true, false, "MachinesReady", "2 with a pending update are locked", "unlock")
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w", Phase: "Reconfiguring", Machines: v1alpha1.MachineCounts{Total: 2, Connected: 2, Healthy: 2, Requested: 2}}), "w"),
		false, false, "MachinesNotReady", "Omni does not say that the set is ready: it is in phase Reconfiguring, with 2 of 2 machines healthy")
	check(t, judgeSet(of(v1alpha1.MachineSetStatus{Name: "w", LockedUpdates: 1}), "w"), false, false, "MachinesNotReady", "1 with a pending update are locked")
}

// While a Talos version waits for its turn, machines that boot the new one do not join: the set names both versions.
func TestJudgeSetWhileTalosIsHeld(t *testing.T) {
	of := func(ready bool, rollout *v1alpha1.OmniClusterRollout) *v1alpha1.OmniCluster {
		cluster := &v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{Rollout: rollout, Omni: &v1alpha1.OmniClusterRemoteStatus{
			TalosVersion: "v1.13.3", MachineSets: []v1alpha1.MachineSetStatus{{Name: "w", Ready: ready}},
		}}}
		cluster.Spec.Talos.Version = "v1.14.0"

		return cluster
	}
	held := func(state v1alpha1.RolloutState, policy string, kinds ...v1alpha1.ChangeKind) *v1alpha1.OmniClusterRollout {
		return &v1alpha1.OmniClusterRollout{State: state, Policy: policy, Kinds: kinds}
	}

	const both = "; the cluster runs Talos v1.13.3, and v1.14.0 is held"

	talos := held(v1alpha1.RolloutHeld, "production", v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeTalosVersion)
	check(t, judgeSet(of(false, talos), "w"), false, false, "MachinesNotReady", both+` by OmniRolloutPolicy "production"`)
	check(t, judgeSet(of(true, talos), "w"), true, false, "MachinesReady", both+` by OmniRolloutPolicy "production"`)
	check(t, judgeSet(of(false, held(v1alpha1.RolloutHeld, "", v1alpha1.ChangeTalosVersion)), "w"), false, false, "MachinesNotReady", both)

	for name, rollout := range map[string]*v1alpha1.OmniClusterRollout{
		"no policy": nil, "another change": held(v1alpha1.RolloutHeld, "production", v1alpha1.ChangeMachineConfig),
		"its turn": held(v1alpha1.RolloutAdmitted, "production", v1alpha1.ChangeTalosVersion),
	} {
		if message := judgeSet(of(false, rollout), "w").Message(); strings.Contains(message, "Talos") {
			t.Errorf("%s: %s", name, message)
		}
	}
}

func TestJudgeMachine(t *testing.T) {
	of := func(states ...v1alpha1.MachineState) *v1alpha1.OmniCluster {
		return &v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{Omni: &v1alpha1.OmniClusterRemoteStatus{MachineStates: states}}}
	}

	applied, held := loop.Continue(v1alpha1.ReasonApplied, "Omni has this generation"), loop.Note(v1alpha1.ReasonHeld, "the policy holds it")

	check(t, judgeMachine(&v1alpha1.OmniCluster{}, "id", applied), false, false, "MachinesNotReady", "nothing")
	check(t, judgeMachine(of(v1alpha1.MachineState{ID: "id", Ready: true}), "id", applied), false, false, "MachinesNotReady", "not connected", "last stage unknown", "check that it runs")
	check(t, judgeMachine(of(v1alpha1.MachineState{ID: "id", Connected: true, Stage: "Booting"}), "id", applied), false, false, "MachinesNotReady", "Booting")
	check(t, judgeMachine(of(v1alpha1.MachineState{ID: "id", Connected: true, Ready: true, Stage: "Running"}), "id", applied), true, false, "MachinesReady", "Running")

	// A change that is held may be the one that brings the machine: the document is not in progress, for days.
	check(t, judgeMachine(&v1alpha1.OmniCluster{}, "id", held), true, false, "Held", "the policy holds it")
	check(t, judgeMachine(of(v1alpha1.MachineState{ID: "id", Ready: true}), "id", held), false, false, "MachinesNotReady", "not connected")
}

// Omni refused this very generation of the document: it says so itself. An older one's refusal is not about it.
func TestJudgeSyncedRefused(t *testing.T) {
	w := newWorkers("w", "")
	refusal := func(uid string, generation int64) *v1alpha1.OmniCluster {
		return &v1alpha1.OmniCluster{ObjectMeta: metadata("demo"), Status: v1alpha1.OmniClusterStatus{Refusals: []v1alpha1.RefusedChange{
			{Message: "the cluster's own"},
			{Message: "no such class", Documents: []v1alpha1.RefusedDocument{{UID: uid, Generation: generation}}},
		}}}
	}

	check(t, judgeSynced(&w, refusal("uid-w", 2), nil), false, true, "Refused", "no such class", `"demo"`)
	check(t, judgeSynced(&w, refusal("uid-w", 1), nil), false, false, "WaitingForSync")
	check(t, judgeSynced(&w, refusal("uid-x", 2), nil), false, false, "WaitingForSync")
	check(t, judgeSynced(&w, refusal("uid-w", 2), []v1alpha1.AppliedReference{{UID: "uid-w", Generation: 2}}), false, true, "Refused")

	// Omni may refuse a machine because it has booted the Talos that is held: the message names both versions.
	talosHeld := refusal("uid-w", 2)
	talosHeld.Status.Rollout = &v1alpha1.OmniClusterRollout{State: v1alpha1.RolloutHeld, Kinds: []v1alpha1.ChangeKind{v1alpha1.ChangeTalosVersion}}
	talosHeld.Spec.Talos.Version = "v1.14.0"
	check(t, judgeSynced(&w, talosHeld, nil), false, true, "Refused", "no such class; OmniCluster")

	talosHeld.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{TalosVersion: "v1.13.3"}
	check(t, judgeSynced(&w, talosHeld, nil), false, true, "Refused", "no such class; the cluster runs Talos v1.13.3, and v1.14.0 is held; OmniCluster")
}
