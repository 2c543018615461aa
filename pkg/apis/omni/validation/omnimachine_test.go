package validation

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
)

func validMachine() *omni.OmniMachine {
	return &omni.OmniMachine{
		ObjectMeta: meta(machine1),
		Spec:       omni.OmniMachineSpec{ClusterRef: omni.LocalObjectReference{Name: "cluster-01"}},
	}
}

func TestValidateOmniMachine(t *testing.T) {
	id := func(metaName, specID string) func(*omni.OmniMachine) {
		return func(m *omni.OmniMachine) { m.Name, m.Spec.MachineID = metaName, specID }
	}

	checkRules(t, validMachine, ValidateOmniMachine, []row[omni.OmniMachine]{
		{name: "UUID in metadata.name"},
		{"UUID in the spec", id("node-1", machine2), nil},
		{"no UUID anywhere", id("node-1", ""), []string{"spec.machineID: Invalid value"}},
		{"no UUID in the spec", id(machine1, "node-1"), []string{"spec.machineID: Invalid value"}},
		{"cluster missing", func(m *omni.OmniMachine) { m.Spec.ClusterRef.Name = "" }, []string{"spec.clusterRef.name: Required value"}},
		{"everything else", func(m *omni.OmniMachine) {
			m.Spec.Locked, m.Spec.Install.Disk = true, "/dev/sda"
			m.Spec.KernelArgs, m.Spec.SystemExtensions = []string{}, []string{}
		}, nil},
		{"bad lists", func(m *omni.OmniMachine) {
			m.Spec.KernelArgs, m.Spec.SystemExtensions = []string{""}, []string{"a", " "}
		},
			[]string{"spec.systemExtensions[1]: Required value", "spec.kernelArgs[0]: Required value"}},
		{"Omni's label", func(m *omni.OmniMachine) { m.Spec.Labels = map[string]string{"omni.sidero.dev/x": ""} },
			[]string{"spec.labels[omni.sidero.dev/x]: Forbidden"}},
		{"patch", func(m *omni.OmniMachine) { m.Spec.Patches = []omni.Patch{{Name: "a"}} }, []string{"spec.patches[0]: Required value"}},
	})
}

func TestValidateOmniMachineUpdate(t *testing.T) {
	checkUpdates(t, validMachine, ValidateOmniMachineUpdate, []updateRow[omni.OmniMachine]{
		{name: "nothing changed"},
		{"locked", nil, func(m *omni.OmniMachine) { m.Spec.Locked = true }, nil},
		{"the same UUID, now written down", nil, func(m *omni.OmniMachine) { m.Spec.MachineID = machine1 }, nil},
		{"another machine", nil, func(m *omni.OmniMachine) { m.Spec.MachineID = machine2 }, []string{"spec.machineID: Invalid value"}},
		{"another machine while being deleted", func(m *omni.OmniMachine) { deleting(&m.ObjectMeta) },
			func(m *omni.OmniMachine) { m.Spec.MachineID, m.Spec.ClusterRef.Name = machine2, "" }, []string{"spec.machineID: Invalid value"}},
	})
}

func TestWarningsForOmniMachine(t *testing.T) {
	machine := validMachine()
	checkWarnings(t, WarningsForOmniMachine(machine), nil)

	machine.Spec.MachineID = strings.ToUpper(machine1)
	checkWarnings(t, WarningsForOmniMachine(machine), []string{"spec.machineID: Omni writes machine UUIDs in lower case: " + machine1})
}
