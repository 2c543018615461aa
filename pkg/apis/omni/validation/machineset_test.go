package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	machine1 = "26b87860-38b4-400f-af72-bc8d26ab6cd6"
	machine2 = "2fed42f7-ad55-4c05-9c2f-4c5b1f1e0d7a"
	machine3 = "58b25b0e-09b6-4a52-a9a1-2d2a8b7a1b33"
)

func validControlPlane() *v1alpha1.OmniControlPlane {
	return &v1alpha1.OmniControlPlane{
		ObjectMeta: meta("cluster-01"),
		Spec: v1alpha1.OmniControlPlaneSpec{
			ClusterRef:         v1alpha1.LocalObjectReference{Name: "cluster-01"},
			MachineSetMachines: v1alpha1.MachineSetMachines{Machines: []string{machine1}},
		},
	}
}

func validWorkers() *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{
		ObjectMeta: meta("pool"),
		Spec: v1alpha1.OmniWorkersSpec{
			ClusterRef:         v1alpha1.LocalObjectReference{Name: "cluster-01"},
			MachineSetMachines: v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromInt32(3))},
		},
	}
}

func class(size intstr.IntOrString) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{Name: "large", Size: &size}
}

func TestValidateOmniControlPlane(t *testing.T) {
	machines := func(ids ...string) func(*v1alpha1.OmniControlPlane) {
		return func(c *v1alpha1.OmniControlPlane) { c.Spec.Machines = ids }
	}
	byClass := func(size intstr.IntOrString) func(*v1alpha1.OmniControlPlane) {
		return func(c *v1alpha1.OmniControlPlane) { c.Spec.Machines, c.Spec.MachineClass = nil, class(size) }
	}
	bootstrap := func(uuid, snapshot string) func(*v1alpha1.OmniControlPlane) {
		return func(c *v1alpha1.OmniControlPlane) {
			c.Spec.BootstrapSpec = &v1alpha1.BootstrapSpec{ClusterUUID: uuid, Snapshot: snapshot}
		}
	}

	checkRules(t, validControlPlane, ValidateOmniControlPlane, []row[v1alpha1.OmniControlPlane]{
		{name: "valid"},
		{"cluster missing", func(c *v1alpha1.OmniControlPlane) { c.Spec.ClusterRef.Name = "" }, []string{"spec.clusterRef.name: Required value"}},
		{"cluster name wrong", func(c *v1alpha1.OmniControlPlane) { c.Spec.ClusterRef.Name = "a_b" }, []string{"spec.clusterRef.name: Invalid value"}},
		{"metadata.name with dots", func(c *v1alpha1.OmniControlPlane) { c.Name = "a.b" }, nil},
		{"no machines", machines(), []string{"spec.machines: Required value"}},
		{"two machines", machines(machine1, machine2), nil},
		{"machine twice", machines(machine1, machine1), []string{"spec.machines[1]: Duplicate value"}},
		{"machine twice in different cases", machines(machine1, strings.ToUpper(machine1)), []string{"spec.machines[1]: Duplicate value"}},
		{"spellings of UUIDs", machines(strings.ToUpper(machine1), "{"+machine2+"}", "urn:uuid:"+machine3), nil},
		{"machine twice in different spellings", machines(machine1, strings.ReplaceAll(machine1, "-", "")), []string{"spec.machines[1]: Duplicate value"}},
		{"no UUIDs", machines("", "node-1", machine1+"0", "("+machine1+")", machine1+"\n"), []string{
			"spec.machines[0]: Invalid value", "spec.machines[1]: Invalid value", "spec.machines[2]: Invalid value",
			"spec.machines[3]: Invalid value", "spec.machines[4]: Invalid value",
		}},
		{"machine class", byClass(intstr.FromInt32(1)), nil},
		{"unlimited", byClass(intstr.FromString("unlimited")), nil},
		{"class of size 0", byClass(intstr.FromInt32(0)), []string{"spec.machineClass.size: Invalid value"}},
		{"class of negative size", byClass(intstr.FromInt32(-1)), []string{"spec.machineClass.size: Invalid value"}},
		{"quoted size", byClass(intstr.FromString("3")), nil},
		{"quoted 0", byClass(intstr.FromString("0")), []string{"spec.machineClass.size: Invalid value"}},
		{"infinity", byClass(intstr.FromString("infinity")), nil},
		{"quoted size with a sign", byClass(intstr.FromString("+3")), []string{"spec.machineClass.size: Invalid value"}},
		{"quoted size of too many machines", byClass(intstr.FromString("2147483648")), []string{"spec.machineClass.size: Invalid value"}},
		{"empty size", byClass(intstr.FromString("")), []string{"spec.machineClass.size: Invalid value"}},
		{"class without name and size", func(c *v1alpha1.OmniControlPlane) {
			c.Spec.Machines, c.Spec.MachineClass = nil, &v1alpha1.MachineClass{}
		},
			[]string{"spec.machineClass.name: Required value", "spec.machineClass.size: Required value"}},
		{"machines and class", func(c *v1alpha1.OmniControlPlane) { c.Spec.MachineClass = class(intstr.FromInt32(1)) }, []string{"spec.machineClass: Forbidden"}},
		{"kernel arguments", func(c *v1alpha1.OmniControlPlane) { c.Spec.KernelArgs = []string{"a=b"} }, nil},
		{"empty kernel arguments and class", func(c *v1alpha1.OmniControlPlane) {
			byClass(intstr.FromInt32(1))(c)
			c.Spec.KernelArgs = []string{}
		}, []string{"spec.kernelArgs: Forbidden"}},
		{"empty entries", func(c *v1alpha1.OmniControlPlane) {
			c.Spec.KernelArgs, c.Spec.SystemExtensions = []string{""}, []string{""}
		},
			[]string{"spec.systemExtensions[0]: Required value", "spec.kernelArgs[0]: Required value"}},
		{"Omni's label and annotation", func(c *v1alpha1.OmniControlPlane) {
			c.Spec.Labels = map[string]string{"omni.sidero.dev/x": ""}
			c.Spec.Annotations = map[string]string{"omni.sidero.dev/y": ""}
		}, []string{"spec.labels[omni.sidero.dev/x]: Forbidden", "spec.annotations[omni.sidero.dev/y]: Forbidden"}},
		{"patch", func(c *v1alpha1.OmniControlPlane) { c.Spec.Patches = []v1alpha1.Patch{{}} },
			[]string{"spec.patches[0].name: Required value", "spec.patches[0]: Required value"}},
		{"bootstrap", bootstrap(machine1, "a.snapshot"), nil},
		{"empty bootstrap", bootstrap("", ""), []string{"spec.bootstrapSpec.clusterUUID: Required value", "spec.bootstrapSpec.snapshot: Required value"}},
		{"bootstrap from a name", bootstrap("cluster-01", "a.snapshot"), []string{"spec.bootstrapSpec.clusterUUID: Invalid value"}},
	})
}

func TestValidateStrategy(t *testing.T) {
	strategy := func(s v1alpha1.Strategy) func(*v1alpha1.OmniWorkers) {
		return func(w *v1alpha1.OmniWorkers) {
			w.Spec.UpdateStrategy, w.Spec.UpgradeStrategy, w.Spec.DeleteStrategy = s.DeepCopy(), s.DeepCopy(), s.DeepCopy()
		}
	}

	checkRules(t, validWorkers, ValidateOmniWorkers, []row[v1alpha1.OmniWorkers]{
		{"rolling", strategy(v1alpha1.Strategy{Type: v1alpha1.StrategyRolling, Rolling: &v1alpha1.RollingStrategy{MaxParallelism: 1}}), nil},
		{"rolling without a bound", strategy(v1alpha1.Strategy{Type: v1alpha1.StrategyRolling}), nil},
		{"unset", strategy(v1alpha1.Strategy{Type: v1alpha1.StrategyUnset}), nil},
		{"no type", strategy(v1alpha1.Strategy{}), nil},
		{"only rolling", strategy(v1alpha1.Strategy{Rolling: &v1alpha1.RollingStrategy{}}), nil},
		{"unknown type", strategy(v1alpha1.Strategy{Type: "rolling"}), []string{
			"spec.updateStrategy.type: Unsupported value", "spec.upgradeStrategy.type: Unsupported value", "spec.deleteStrategy.type: Unsupported value",
		}},
		{"negative parallelism", strategy(v1alpha1.Strategy{Type: v1alpha1.StrategyRolling, Rolling: &v1alpha1.RollingStrategy{MaxParallelism: -1}}), []string{
			"spec.updateStrategy.rolling.maxParallelism: Invalid value", "spec.upgradeStrategy.rolling.maxParallelism: Invalid value",
			"spec.deleteStrategy.rolling.maxParallelism: Invalid value",
		}},
	})

	checkRules(t, validControlPlane, ValidateOmniControlPlane, []row[v1alpha1.OmniControlPlane]{
		{"control plane", func(c *v1alpha1.OmniControlPlane) {
			c.Spec.UpgradeStrategy = &v1alpha1.Strategy{Type: v1alpha1.StrategyUnset}
		}, nil},
		{"control plane without type", func(c *v1alpha1.OmniControlPlane) { c.Spec.UpgradeStrategy = &v1alpha1.Strategy{} }, nil},
	})
}

func TestValidateOmniWorkers(t *testing.T) {
	name := func(metaName, specName string) func(*v1alpha1.OmniWorkers) {
		return func(w *v1alpha1.OmniWorkers) { w.Name, w.Spec.WorkerSetName = metaName, specName }
	}

	const badName = "spec.workerSetName: Invalid value"

	checkRules(t, validWorkers, ValidateOmniWorkers, []row[v1alpha1.OmniWorkers]{
		{name: "valid"},
		{"cluster missing", func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "" }, []string{"spec.clusterRef.name: Required value"}},
		{"set name", name("a.b", "Pool_01"), nil},
		{"set name wrong", name("a", "a.b"), []string{badName}},
		{"set name too long", name("a", strings.Repeat("a", 64)), []string{badName}},
		{"metadata.name cannot serve", name("a.b", ""), []string{badName}},
		{"set name of the control plane", name("a", "control-planes"), []string{badName}},
		{"metadata.name of the control plane", name("control-planes", ""), []string{badName}},
		{"metadata.name of the control plane, another set name", name("control-planes", "pool"), nil},
		{"empty static set", func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass = nil }, nil},
		{"static set", func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass, w.Spec.Machines = nil, []string{machine1} }, nil},
		{"machine twice", func(w *v1alpha1.OmniWorkers) {
			w.Spec.MachineClass, w.Spec.Machines = nil, []string{machine1, machine1}
		},
			[]string{"spec.machines[1]: Duplicate value"}},
		{"machines and class", func(w *v1alpha1.OmniWorkers) { w.Spec.Machines = []string{machine1} }, []string{"spec.machineClass: Forbidden"}},
		{"class of size 0", func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass = class(intstr.FromInt32(0)) }, nil},
		{"class of negative size", func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass = class(intstr.FromInt32(-1)) },
			[]string{"spec.machineClass.size: Invalid value"}},
		{"kernel arguments and class", func(w *v1alpha1.OmniWorkers) { w.Spec.KernelArgs = []string{"a=b"} }, []string{"spec.kernelArgs: Forbidden"}},
		{"extensions and class", func(w *v1alpha1.OmniWorkers) { w.Spec.SystemExtensions = []string{} }, nil},
		{"Omni's label", func(w *v1alpha1.OmniWorkers) { w.Spec.Labels = map[string]string{"omni.sidero.dev/x": ""} },
			[]string{"spec.labels[omni.sidero.dev/x]: Forbidden"}},
		{"patch", func(w *v1alpha1.OmniWorkers) { w.Spec.Patches = []v1alpha1.Patch{{Name: "a"}} }, []string{"spec.patches[0]: Required value"}},
	})
}

func TestValidateMachineSetUpdates(t *testing.T) {
	bootstrap := &v1alpha1.BootstrapSpec{ClusterUUID: machine1, Snapshot: "a"}

	const (
		badBootstrap = "spec.bootstrapSpec: Invalid value"
		badName      = "spec.workerSetName: Invalid value"
		badCluster   = "spec.clusterRef.name: Invalid value"
	)

	counted := &v1alpha1.LocalObjectReference{Name: "cluster-01"}

	checkUpdates(t, validControlPlane, ValidateOmniControlPlaneUpdate, []updateRow[v1alpha1.OmniControlPlane]{
		{name: "nothing changed"},
		{"another cluster", nil, func(c *v1alpha1.OmniControlPlane) { c.Spec.ClusterRef.Name = "cluster-1" }, nil},
		{"another cluster than the one that counts it", func(c *v1alpha1.OmniControlPlane) { c.Status.ClusterRef = counted },
			func(c *v1alpha1.OmniControlPlane) { c.Spec.ClusterRef.Name = "cluster-1" }, []string{badCluster}},
		{"machines changed", nil, func(c *v1alpha1.OmniControlPlane) { c.Spec.Machines = []string{machine2} }, nil},
		{"last machine removed", nil, func(c *v1alpha1.OmniControlPlane) { c.Spec.Machines = nil }, []string{"spec.machines: Required value"}},
		{"bootstrap added", nil, func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec = bootstrap }, []string{badBootstrap}},
		{"bootstrap removed", func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec = bootstrap },
			func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec = nil }, []string{badBootstrap}},
		{"bootstrap changed while being deleted", func(c *v1alpha1.OmniControlPlane) { deleting(&c.ObjectMeta) },
			func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec, c.Spec.Machines = bootstrap, nil }, []string{badBootstrap}},
		{"bootstrap kept", func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec = bootstrap },
			func(c *v1alpha1.OmniControlPlane) { c.Spec.BootstrapSpec = bootstrap.DeepCopy() }, nil},
	})

	checkUpdates(t, validWorkers, ValidateOmniWorkersUpdate, []updateRow[v1alpha1.OmniWorkers]{
		{name: "nothing changed"},
		{"another cluster", nil, func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "cluster-1" }, nil},
		{"another cluster than the one that counts it", func(w *v1alpha1.OmniWorkers) { w.Status.ClusterRef = counted },
			func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "cluster-1" }, []string{badCluster}},
		{"the same while being deleted", func(w *v1alpha1.OmniWorkers) { deleting(&w.ObjectMeta); w.Status.ClusterRef = counted },
			func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "cluster-1" }, []string{badCluster}},
		{"back to the cluster that counts it", func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name, w.Status.ClusterRef = "cluster-1", counted },
			func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "cluster-01" }, nil},
		{"to a third one", func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name, w.Status.ClusterRef = "cluster-1", counted },
			func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "cluster-2" }, []string{badCluster}},
		{"scaled", nil, func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass = class(intstr.FromInt32(5)) }, nil},
		{"to a static set", nil, func(w *v1alpha1.OmniWorkers) { w.Spec.MachineClass = nil }, nil},
		{"renamed", nil, func(w *v1alpha1.OmniWorkers) { w.Spec.WorkerSetName = "other" }, []string{badName}},
		{"the same name, now written down", nil, func(w *v1alpha1.OmniWorkers) { w.Spec.WorkerSetName = "pool" }, nil},
		{"renamed while being deleted", func(w *v1alpha1.OmniWorkers) { deleting(&w.ObjectMeta) },
			func(w *v1alpha1.OmniWorkers) { w.Spec.WorkerSetName, w.Spec.ClusterRef.Name = "other", "" }, []string{badName}},
		{"older rule, annotation changed", func(w *v1alpha1.OmniWorkers) { w.Spec.ClusterRef.Name = "A" },
			func(w *v1alpha1.OmniWorkers) { w.Annotations = map[string]string{"a": "b"} }, nil},
	})
}

// The remedy is the way to restore a cluster. Whoever deletes the OmniCluster loses the backup.
func TestRemedyForAChangedBootstrap(t *testing.T) {
	old := validControlPlane()
	obj := old.DeepCopy()
	obj.Spec.BootstrapSpec = &v1alpha1.BootstrapSpec{ClusterUUID: machine1, Snapshot: "a"}

	const want = "field is immutable: Omni restores a backup only when it makes the control plane: suspend the cluster, " +
		"delete its control plane set in Omni, and create a new OmniControlPlane; never delete the OmniCluster"

	if errs := ValidateOmniControlPlaneUpdate(obj, old); len(errs) != 1 || errs[0].Detail != want {
		t.Errorf("%v", errs)
	}
}

func TestScale(t *testing.T) {
	const (
		forbidden = "spec.replicas: Forbidden"
		invalid   = "spec.replicas: Invalid value"
	)

	for _, tc := range []struct {
		name                  string
		machines              v1alpha1.MachineSetMachines
		replicas              int32
		wantPlane, wantWorker []string
	}{
		{"up", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromInt32(1))}, 3, nil, nil},
		{"to 0", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromInt32(1))}, 0, []string{invalid}, nil},
		{"negative", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromInt32(1))}, -1, []string{invalid}, []string{invalid}},
		{"quoted", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromString("1"))}, 3, nil, nil},
		{"unlimited", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromString("unlimited"))}, 3, []string{forbidden}, []string{forbidden}},
		{"infinity", v1alpha1.MachineSetMachines{MachineClass: class(intstr.FromString("infinity"))}, 3, []string{forbidden}, []string{forbidden}},
		{"no size", v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "a"}}, 3, []string{forbidden}, []string{forbidden}},
		{"static", v1alpha1.MachineSetMachines{Machines: []string{machine1}}, 1, []string{forbidden}, []string{forbidden}},
		{"empty static", v1alpha1.MachineSetMachines{}, 1, []string{forbidden}, []string{forbidden}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plane, workers := validControlPlane(), validWorkers()
			plane.Spec.MachineSetMachines, workers.Spec.MachineSetMachines = tc.machines, tc.machines

			checkErrors(t, ValidateOmniControlPlaneScale(plane, tc.replicas), tc.wantPlane)
			checkErrors(t, ValidateOmniWorkersScale(workers, tc.replicas), tc.wantWorker)
		})
	}
}

func TestWarningsForMachineSets(t *testing.T) {
	patches := []v1alpha1.Patch{{Name: "a", Inline: freeForm(`{"machine":{"sysctls":{"vm.x":9223372036854775808}}}`)}}
	want := []string{
		"spec.patches[0].inline.machine.sysctls[vm.x]: quote an integer of 2^63 or more: server-side apply rounds it",
	}

	plane, workers := validControlPlane(), validWorkers()
	checkWarnings(t, WarningsForOmniControlPlane(plane), nil)
	checkWarnings(t, WarningsForOmniWorkers(workers), nil)

	plane.Spec.Patches, workers.Spec.Patches = patches, patches

	checkWarnings(t, WarningsForOmniControlPlane(plane), want)
	checkWarnings(t, WarningsForOmniWorkers(workers), want)
}

// A null in a merge patch, or an empty value in a template, empties a list without an error.
func TestWarningsForMachinesThatLeave(t *testing.T) {
	listed := func(ids ...string) v1alpha1.MachineSetMachines { return v1alpha1.MachineSetMachines{Machines: ids} }
	ofClass := func(name string, size intstr.IntOrString) v1alpha1.MachineSetMachines {
		return v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: name, Size: &size}}
	}
	three, one, all := intstr.FromInt32(3), intstr.FromString("1"), intstr.FromString("unlimited")

	var many []string
	for i := range 9 {
		many = append(many, fmt.Sprintf("26b87860-38b4-400f-af72-bc8d26ab6cd%d", i))
	}

	leaves := func(id string) string {
		return "spec.machines: machine " + id + " leaves this set, and Omni wipes it: list it again to keep it"
	}

	for _, tc := range []struct {
		name     string
		old, new v1alpha1.MachineSetMachines
		want     []string
	}{
		{"nothing changed", listed(machine1), listed(machine1), nil},
		{"another spelling", listed(machine1), listed(strings.ToUpper(machine1)), nil},
		{"one more", listed(machine1), listed(machine2, machine1), nil},
		{"null", listed(machine1, machine2), listed(), []string{leaves(machine1), leaves(machine2)}},
		{"replaced", listed(machine1, machine2), listed(machine1, machine3), []string{leaves(machine2)}},
		{"many", listed(many...), listed(many[0]), []string{
			leaves(many[1]), leaves(many[2]), leaves(many[3]), leaves(many[4]), leaves(many[5]),
			"spec.machines: 3 more machines leave this set, and Omni wipes them",
		}},
		{"a class instead", listed(machine1), ofClass("large", three), []string{leaves(machine1)}},
		{"larger", ofClass("large", one), ofClass("large", three), nil},
		{"unlimited", ofClass("large", three), ofClass("large", all), nil},
		{"smaller", ofClass("large", three), ofClass("large", one),
			[]string{"spec.machineClass.size: 2 machines fewer: Omni chooses which leave, and wipes them"}},
		{"a number of all", ofClass("large", all), ofClass("large", three),
			[]string{"spec.machineClass.size: Omni wipes machines of the class beyond 3, and chooses which"}},
		{"another class", ofClass("large", three), ofClass("larger", three),
			[]string{"spec.machineClass: Omni wipes the machines that leave: put class large back to keep them"}},
		{"no class", ofClass(strings.Repeat("x", 300), three), listed(),
			[]string{"spec.machineClass: Omni wipes the machines that leave: put class xxxxxxxxxxxxxxxxxxxx back to keep them"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plane, workers := validControlPlane(), validWorkers()
			oldPlane, oldWorkers := validControlPlane(), validWorkers()
			plane.Spec.MachineSetMachines, workers.Spec.MachineSetMachines = tc.new, tc.new
			oldPlane.Spec.MachineSetMachines, oldWorkers.Spec.MachineSetMachines = tc.old, tc.old

			checkWarnings(t, WarningsForOmniControlPlaneUpdate(plane, oldPlane), tc.want)
			checkWarnings(t, WarningsForOmniWorkersUpdate(workers, oldWorkers), tc.want)
		})
	}
}
