package validation

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validMachine() *v1alpha1.OmniMachine {
	return &v1alpha1.OmniMachine{
		ObjectMeta: meta(machine1),
		Spec:       v1alpha1.OmniMachineSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: "cluster-01"}},
	}
}

func TestValidateOmniMachine(t *testing.T) {
	id := func(metaName, specID string) func(*v1alpha1.OmniMachine) {
		return func(m *v1alpha1.OmniMachine) { m.Name, m.Spec.MachineID = metaName, specID }
	}

	checkRules(t, validMachine, ValidateOmniMachine, []row[v1alpha1.OmniMachine]{
		{name: "UUID in metadata.name"},
		{"UUID in the spec", id("node-1", machine2), nil},
		{"no UUID anywhere", id("node-1", ""), []string{"spec.machineID: Invalid value"}},
		{"no UUID in the spec", id(machine1, "node-1"), []string{"spec.machineID: Invalid value"}},
		{"cluster missing", func(m *v1alpha1.OmniMachine) { m.Spec.ClusterRef.Name = "" }, []string{"spec.clusterRef.name: Required value"}},
		{"everything else", func(m *v1alpha1.OmniMachine) {
			m.Spec.Locked, m.Spec.Install = true, &v1alpha1.MachineInstall{Disk: "/dev/sda"}
			m.Spec.KernelArgs, m.Spec.SystemExtensions = []string{}, []string{}
		}, nil},
		{"a disk selector", func(m *v1alpha1.OmniMachine) {
			m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: "disk.transport == 'nvme' && disk.size > 100u * GB && !system_disk"}
		}, nil},
		{"a disk and a selector", func(m *v1alpha1.OmniMachine) {
			m.Spec.Install = &v1alpha1.MachineInstall{Disk: "/dev/sda", DiskSelector: "true"}
		}, []string{"spec.install.diskSelector: Forbidden"}},
		{"a selector that is no CEL", func(m *v1alpha1.OmniMachine) { m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: "disk.size >"} },
			[]string{"spec.install.diskSelector: Invalid value"}},
		{"a selector of something else", func(m *v1alpha1.OmniMachine) {
			m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: "volume.name == 'a'"}
		},
			[]string{"spec.install.diskSelector: Invalid value"}},
		{"a selector that is a number", func(m *v1alpha1.OmniMachine) { m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: "disk.size"} },
			[]string{"spec.install.diskSelector: Invalid value"}},
		{"a long selector", func(m *v1alpha1.OmniMachine) {
			m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: "true" + strings.Repeat(" ", maxSelector)}
		},
			[]string{"spec.install.diskSelector: Too long"}},
		{"a deep selector", func(m *v1alpha1.OmniMachine) {
			m.Spec.Install = &v1alpha1.MachineInstall{DiskSelector: strings.Repeat("(", 900) + "true" + strings.Repeat(")", 900)}
		}, []string{"spec.install.diskSelector: Invalid value"}},
		{"bad lists", func(m *v1alpha1.OmniMachine) {
			m.Spec.KernelArgs, m.Spec.SystemExtensions = []string{""}, []string{"a", " "}
		},
			[]string{"spec.systemExtensions[1]: Required value", "spec.kernelArgs[0]: Required value"}},
		{"Omni's label", func(m *v1alpha1.OmniMachine) { m.Spec.Labels = map[string]string{"omni.sidero.dev/x": ""} },
			[]string{"spec.labels[omni.sidero.dev/x]: Forbidden"}},
		{"patch", func(m *v1alpha1.OmniMachine) { m.Spec.Patches = []v1alpha1.Patch{{Name: "a"}} }, []string{"spec.patches[0]: Required value"}},
	})
}

func TestValidateOmniMachineUpdate(t *testing.T) {
	checkUpdates(t, validMachine, ValidateOmniMachineUpdate, []updateRow[v1alpha1.OmniMachine]{
		{name: "nothing changed"},
		{"another cluster", nil, func(m *v1alpha1.OmniMachine) { m.Spec.ClusterRef.Name = "cluster-1" }, nil},
		{"another cluster than the one that counts it", func(m *v1alpha1.OmniMachine) {
			m.Status.ClusterRef = &v1alpha1.LocalObjectReference{Name: "cluster-01"}
		},
			func(m *v1alpha1.OmniMachine) { m.Spec.ClusterRef.Name = "cluster-1" }, []string{"spec.clusterRef.name: Invalid value"}},
		{"locked", nil, func(m *v1alpha1.OmniMachine) { m.Spec.Locked = true }, nil},
		{"the same UUID, now written down", nil, func(m *v1alpha1.OmniMachine) { m.Spec.MachineID = machine1 }, nil},
		{"another machine", nil, func(m *v1alpha1.OmniMachine) { m.Spec.MachineID = machine2 }, []string{"spec.machineID: Invalid value"}},
		{"another machine while being deleted", func(m *v1alpha1.OmniMachine) { deleting(&m.ObjectMeta) },
			func(m *v1alpha1.OmniMachine) { m.Spec.MachineID, m.Spec.ClusterRef.Name = machine2, "" }, []string{"spec.machineID: Invalid value"}},
	})
}

func TestWarningsForOmniMachine(t *testing.T) {
	machine := validMachine()
	checkWarnings(t, WarningsForOmniMachine(machine), nil)

	machine.Spec.Patches = []v1alpha1.Patch{{Name: "a", Inline: freeForm(`{"machine":{"sysctls":{"vm.x":9223372036854775808}}}`)}}
	checkWarnings(t, WarningsForOmniMachine(machine),
		[]string{"spec.patches[0].inline.machine.sysctls[vm.x]: quote an integer of 2^63 or more: server-side apply rounds it"})

	machine.Spec.Patches = []v1alpha1.Patch{
		{Name: "a", Inline: freeForm(`{"machine":{"install":{"disk":"/dev/sda","wipe":true}}}`)},
		{Name: "b", Inline: freeForm(`{"machine":{"install":{"wipe":true}}}`)},
		{Name: "c", Inline: freeForm(`{"machine":null}`)},
	}
	checkWarnings(t, WarningsForOmniMachine(machine),
		[]string{"spec.patches[0].inline: Omni 1.11 refuses machine.install.disk: set install.disk or diskSelector of the OmniMachine"})
}
