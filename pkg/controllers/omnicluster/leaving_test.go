package omnicluster

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestDescribeProgress(t *testing.T) {
	now := time.Unix(10000, 0)
	since := now.Add(-time.Minute)
	long := now.Add(-time.Hour)

	for name, test := range map[string]struct {
		progress        observe.DeleteProgress
		destroyMachines bool
		blocks          bool
		reason          string
		message         string
	}{
		"on its way": {
			observe.DeleteProgress{TearingDown: true, Since: since, Blockers: []observe.Blocker{{Machine: "m1", Connected: true, Since: since}}},
			false, false, "Deleting",
			`cluster "demo" is being destroyed in Omni since 1970-01-01T02:45:40Z; it waits for machine m1 since 1970-01-01T02:45:40Z`,
		},
		"for long, without machines": {
			observe.DeleteProgress{TearingDown: true, Since: long, Finalizers: []string{"X", "Y"}}, false, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni since 1970-01-01T01:46:40Z; it waits for Omni's own clean-up: X, Y`,
		},
		"for long, with machines": {
			observe.DeleteProgress{TearingDown: true, Since: long, Blockers: []observe.Blocker{{Machine: "m1", Connected: true}}},
			true, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni since 1970-01-01T01:46:40Z; it waits for machine m1. ` +
				`All of them are connected: look at what they do in Omni`,
		},
		"a machine that is not connected": {
			observe.DeleteProgress{Blockers: []observe.Blocker{{Machine: "m1", Since: since}, {Machine: "m2", Connected: true}}}, false, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected) since 1970-01-01T02:45:40Z, machine m2. ` +
				`A machine that is not connected cannot be reset, and Omni waits for it without end: bring it back, ` +
				`or set spec.deletePolicy.destroyMachines: true to have it removed from Omni as it is`,
		},
		"a machine that is not connected, to be removed": {
			observe.DeleteProgress{Blockers: []observe.Blocker{{Machine: "m1"}}}, true, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected). ` +
				`A machine that is not connected cannot be reset; because spec.deletePolicy.destroyMachines is set it is removed from Omni ` +
				`as it is, as soon as Omni counts it as disconnected (about 5 minutes after it fell silent)`,
		},
		"a machine that was shut down, to be removed": {
			observe.DeleteProgress{Blockers: []observe.Blocker{{Machine: "m1", PoweredOff: true}}}, true, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected). A machine that is not connected cannot be reset. ` +
				`Omni knows these as powered off and does not count them as disconnected, so that destroyMachines does not remove them: m1. ` +
				`Power such a machine on, or take it out of Omni: omnictl delete link UUID`,
		},
		"a machine that was shut down": {
			observe.DeleteProgress{Blockers: []observe.Blocker{{Machine: "m1", PoweredOff: true}}}, false, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected). A machine that is not connected cannot be reset. ` +
				`Omni knows these as powered off and does not count them as disconnected, so that destroyMachines does not remove them: m1. ` +
				`Power such a machine on, or take it out of Omni: omnictl delete link UUID`,
		},
		"a dead machine and one that was shut down, to be removed": {
			observe.DeleteProgress{Blockers: []observe.Blocker{{Machine: "m1"}, {Machine: "m2", PoweredOff: true}}}, true, true, "WaitingForMachines",
			`cluster "demo" is being destroyed in Omni; it waits for machine m1 (not connected), machine m2 (not connected). ` +
				`A machine that is not connected cannot be reset; because spec.deletePolicy.destroyMachines is set it is removed from Omni ` +
				`as it is, as soon as Omni counts it as disconnected (about 5 minutes after it fell silent). ` +
				`Omni knows these as powered off and does not count them as disconnected, so that destroyMachines does not remove them: m2. ` +
				`Power such a machine on, or take it out of Omni: omnictl delete link UUID`,
		},
		"many machines": {
			observe.DeleteProgress{Blockers: []observe.Blocker{
				{Machine: "1", Connected: true}, {Machine: "2", Connected: true}, {Machine: "3", Connected: true},
				{Machine: "4", Connected: true}, {Machine: "5", Connected: true}, {Machine: "6", Connected: true},
			}}, false, false, "Deleting",
			`cluster "demo" is being destroyed in Omni; it waits for machine 1, machine 2, machine 3, machine 4, machine 5, and 1 more`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeProgress("demo", test.progress, test.destroyMachines, now)
			if got.Blocks() != test.blocks || got.Reason() != test.reason || got.Message() != test.message {
				t.Errorf("blocks %v, %s: %s", got.Blocks(), got.Reason(), got.Message())
			}
		})
	}
}

func TestLeavingText(t *testing.T) {
	set := []plan.Change{{Action: plan.ActionDestroy, Type: "MachineSets.omni.sidero.dev", ID: "demo-w"}}

	for name, test := range map[string]struct {
		machines []observe.Blocker
		want     string
	}{
		"nothing is known": {nil, `waiting for Omni to destroy MachineSet "demo-w"`},
		"connected": {
			[]observe.Blocker{{Machine: "m1", Connected: true, Since: time.Unix(0, 0)}},
			`waiting for Omni to destroy MachineSet "demo-w"; leaving: machine m1 since 1970-01-01T00:00:00Z`,
		},
		"not connected": {
			[]observe.Blocker{{Machine: "m1"}},
			`waiting for Omni to destroy MachineSet "demo-w"; leaving: machine m1 (not connected). ` +
				`A machine that is not connected cannot be reset, and Omni waits for it: bring it back, or remove it in Omni`,
		},
		"Omni waits with it": {
			[]observe.Blocker{{Machine: "m1", Connected: true, Waits: true}},
			`waiting for Omni to destroy MachineSet "demo-w"; leaving: machine m1. Omni has not begun with each of them: ` +
				`it takes a machine out of the control plane while the load balancer is healthy and etcd keeps its quorum without it ` +
				`(look at etcd on the others), and one out of a worker set when its turn comes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leavingText(set, test.machines); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Each different reason is told once, and machines that leave are named: without that nobody sees what never ends.
func TestWaitingText(t *testing.T) {
	waits := []plan.Change{
		{Type: "MachineSetNodes.omni.sidero.dev", ID: "m3", Reason: "the patch has to be there first"},
		{Type: "MachineSetNodes.omni.sidero.dev", ID: "m4", Reason: "the patch has to be there first"},
		{Type: "ConfigPatches.omni.sidero.dev", ID: "400-net", Reason: "machine m1 keeps it"},
	}

	const text = `waiting for Omni: MachineSetNode "m3", MachineSetNode "m4", ConfigPatch "400-net": the patch has to be there first; machine m1 keeps it`

	if got := waitingText(waits, nil); got != text {
		t.Errorf("got %s", got)
	}

	want := text + "; leaving: machine m1 (not connected). A machine that is not connected cannot be reset, and Omni waits for it: bring it back, or remove it in Omni"
	if got := waitingText(waits, []observe.Blocker{{Machine: "m1"}}); got != want {
		t.Errorf("got %s", got)
	}
}
