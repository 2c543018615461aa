package e2e

import (
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// handmadeHazards are changes that people make in Omni's interface to a cluster of ours.
func handmadeHazards() []hazard {
	return []hazard{
		{
			name: "cluster locked in Omni then deleted",
			when: func(f *fleet) {
				f.lockCluster("c")
				f.says("c", v1alpha1.ConditionStalled, "True", v1alpha1.ReasonRemoteLocked, "unlock")
				f.run("delete", "ocl", "c", "--wait=false")
			},
			says: []seen{deletionBlocked(v1alpha1.ReasonRemoteLocked, "unlock", "orphan")},
			then: func(f *fleet) {
				if err := omnisim.RemoveAnnotation(f.t.Context(), f.omni.State(), "c", omni.ClusterLocked); err != nil {
					f.t.Fatal(err)
				}

				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			name: "cluster locked in Omni then changed",
			when: func(f *fleet) {
				f.lockCluster("c")
				f.run("scale", "omniworkers/c-w", "--replicas=0")
			},
			says: []seen{stalled(v1alpha1.ReasonRemoteLocked, "unlock")},
		},
		{
			name:  "machine locked in Omni",
			given: func(f *fleet) { f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]")) },
			when: func(f *fleet) {
				f.lockMachine(f.machines[1])
				f.merge(`{"spec":{"labels":{"staged":"yes"}}}`)
				f.ready("c")
			},
			then: func(f *fleet) {
				if !f.machineLocked(f.machines[1]) {
					f.t.Error("the machine lock was taken off")
				}
			},
		},
		{
			name: "patch added in Omni",
			when: func(f *fleet) {
				f.handmadePatch("500-by-hand")
				f.wait("the patch to go", func() error {
					if patches := f.view("c").Patches; len(patches) > 0 {
						return fmt.Errorf("Omni has %v", patches)
					}

					return nil
				})
			},
			says:      []seen{ready()},
			destroyed: []string{"ConfigPatch 500-by-hand"},
		},
		{
			name:     "set added in Omni",
			when:     func(f *fleet) { f.handmadeSet("c", "by-hand", omni.LabelWorkerRole, f.machines[3]) },
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-by-hand"`, "not made by this object", "approvedPlan")},
			machines: sizes(2, map[string]int{"by-hand": 1}),
			then: func(f *fleet) {
				// What was asked for is not held up by it.
				f.run("scale", "omniworkers/c-w", "--replicas=1")
				f.waitMachines("c", "c-w", 1)
				f.wantDestroyed()
				f.approve("c")
				f.wait("the set to go", func() error { return f.absent("c-by-hand") })
				f.ready("c")
			},
			finally: []string{"MachineSet c-by-hand"},
		},
		{
			name: "manifest group added in Omni",
			when: func(f *fleet) { f.handmadeManifests("by-hand", specs.KubernetesManifestGroupSpec_FULL) },
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `KubernetesManifestGroup "by-hand"`, "not made by this object", "approvedPlan")},
			then: func(f *fleet) {
				f.approve("c")
				f.ready("c")
			},
			finally: []string{"KubernetesManifestGroup by-hand"},
		},
		{
			name: "one-time manifest group added in Omni",
			when: func(f *fleet) {
				f.handmadeManifests("by-hand", specs.KubernetesManifestGroupSpec_ONE_TIME)
				f.wait("the group to go", func() error {
					if f.hasManifests("by-hand") {
						return errors.New("Omni has it")
					}

					return nil
				})
			},
			says:      []seen{ready()},
			destroyed: []string{"KubernetesManifestGroup by-hand"},
		},
		{
			name:  "machine added in Omni",
			given: func(f *fleet) { f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]")) },
			when: func(f *fleet) {
				f.handmadeNode("c-static", f.machines[2])
			},
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, "MachineSetNode", "not put there by this object", "approvedPlan")},
			machines: sizes(2, map[string]int{"static": 2}),
			then: func(f *fleet) {
				f.approve("c")
				f.waitMachines("c", "static", 1)
				f.ready("c")
			},
			finally: []string{"MachineSetNode m2"},
		},
		{
			name:  "machine added in Omni then to the document",
			given: func(f *fleet) { f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]")) },
			when: func(f *fleet) {
				f.handmadeNode("c-static", f.machines[2])
				f.says("c", v1alpha1.ConditionStalled, "True", v1alpha1.ReasonAwaitingApproval, "MachineSetNode")
				f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+", "+f.machines[2]+"]"))
			},
			says:     []seen{ready()},
			machines: sizes(2, map[string]int{"static": 2}),
		},
		{
			name: "class set grown in Omni",
			when: func(f *fleet) {
				f.handmadeSize("c-c-w", 4)
			},
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, "not pool-a/2 as this object last applied", "approvedPlan")},
			machines: sizes(4, nil),
			then: func(f *fleet) {
				f.approve("c")
				f.waitMachines("c", "c-w", 2)
				f.ready("c")
			},
		},
		{
			name: "class set shrunk in Omni",
			when: func(f *fleet) {
				f.handmadeSize("c-c-w", 1)
				f.waitMachines("c", "c-w", 2)
			},
			says: []seen{ready()},
		},
		{
			// Suspended meanwhile: nothing is torn down but by hand.
			name: "control plane deleted in Omni",
			when: func(f *fleet) {
				f.merge(`{"spec":{"suspend":true}}`)
				f.waitCondition("ocl", "c", v1alpha1.ConditionSuspended, "True", "")
				f.removeSetInOmni("c-control-planes")
				f.merge(`{"spec":{"suspend":false}}`)
			},
			says: []seen{stalled(v1alpha1.ReasonControlPlaneGone, `MachineSet "c-control-planes"`, "spec.bootstrapSpec", "kubectl annotate omnicluster c")},
			// It is not made again, empty, until somebody says so.
			machines: map[string]int{"c-c-w": 2},
			then: func(f *fleet) {
				lost := get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.ControlPlaneSet
				f.run("annotate", "ocl", "c", v1alpha1.AnnotationRecreate+"="+v1alpha1.RecreateControlPlanePrefix+words.Time(lost.Created.Time))
				f.ready("c")
				f.unchanged("c")
			},
		},
		{
			name: "lock patch and set added with confirmation",
			spec: "  changePolicy: ConfirmDestructive",
			given: func(f *fleet) {
				f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]"))
			},
			when: func(f *fleet) {
				f.lockMachine(f.machines[1])
				f.handmadePatch("500-by-hand")
				f.handmadeSet("c", "by-hand", omni.LabelWorkerRole, f.machines[2])
			},
			says:      []seen{stalled(v1alpha1.ReasonAwaitingApproval, "approvedPlan", `MachineSet "c-by-hand"`)},
			destroyed: []string{"ConfigPatch 500-by-hand"},
			machines:  sizes(2, map[string]int{"static": 1, "by-hand": 1}),
			then: func(f *fleet) {
				if !f.machineLocked(f.machines[1]) {
					f.t.Error("the machine lock was taken off")
				}
			},
		},
	}
}

func (f *fleet) lockCluster(name string) {
	f.t.Helper()

	if err := omnisim.AnnotateCluster(f.t.Context(), f.omni.State(), name, omni.ClusterLocked, ""); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) lockMachine(id string) {
	f.t.Helper()
	f.editNode(id, func(node *omni.MachineSetNode) { node.Metadata().Annotations().Set(omni.MachineLocked, "") })
}

func (f *fleet) unlockMachine(id string) {
	f.t.Helper()
	f.editNode(id, func(node *omni.MachineSetNode) { node.Metadata().Annotations().Delete(omni.MachineLocked) })
}

// editNode changes a machine of a set, as somebody with Omni's own tools does.
func (f *fleet) editNode(id string, edit func(*omni.MachineSetNode)) {
	f.t.Helper()

	_, err := safe.StateUpdateWithConflicts(f.t.Context(), f.omni.State(), omni.NewMachineSetNode(id, omni.NewMachineSet("")).Metadata(),
		func(node *omni.MachineSetNode) error {
			edit(node)

			return nil
		})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) machineLocked(id string) bool {
	f.t.Helper()

	node, err := safe.StateGetByID[*omni.MachineSetNode](f.t.Context(), f.omni.State(), id)
	if err != nil {
		f.t.Fatal(err)
	}

	_, locked := node.Metadata().Annotations().Get(omni.MachineLocked)

	return locked
}

// handmadeSet adds a machine set with machines to a cluster, in Omni.
func (f *fleet) handmadeSet(cluster, name, role string, machines ...string) {
	f.t.Helper()

	set := omni.NewMachineSet(cluster + "-" + name)
	set.Metadata().Labels().Set(omni.LabelCluster, cluster)
	set.Metadata().Labels().Set(role, "")

	if err := f.omni.State().Create(f.t.Context(), set); err != nil {
		f.t.Fatal(err)
	}

	for _, machine := range machines {
		f.handmadeNode(set.Metadata().ID(), machine)
	}
}

// handmadeNode adds a machine to a set, in Omni.
func (f *fleet) handmadeNode(id, machine string) {
	f.t.Helper()

	set, err := safe.StateGetByID[*omni.MachineSet](f.t.Context(), f.omni.State(), id)
	if err != nil {
		f.t.Fatal(err)
	}

	cluster, _ := set.Metadata().Labels().Get(omni.LabelCluster)
	node := omni.NewMachineSetNode(machine, set)
	node.Metadata().Labels().Set(omni.LabelCluster, cluster)

	if err := f.omni.State().Create(f.t.Context(), node); err != nil {
		f.t.Fatal(err)
	}
}

// handmadeSize scales a set of a class, in Omni.
func (f *fleet) handmadeSize(id string, size uint32) {
	f.t.Helper()

	if _, err := safe.StateUpdateWithConflicts(f.t.Context(), f.omni.State(), omni.NewMachineSet(id).Metadata(), func(set *omni.MachineSet) error {
		set.TypedSpec().Value.MachineAllocation.MachineCount = size

		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// handmadePatch adds a configuration patch to cluster c, in Omni.
func (f *fleet) handmadePatch(id string) {
	f.t.Helper()

	patch := omni.NewConfigPatch(id)
	patch.Metadata().Labels().Set(omni.LabelCluster, "c")

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {sysctls: {a: b}}")); err != nil {
		f.t.Fatal(err)
	}

	if err := f.omni.State().Create(f.t.Context(), patch); err != nil {
		f.t.Fatal(err)
	}
}

// handmadeManifests adds a group of Kubernetes objects to cluster c, in Omni.
func (f *fleet) handmadeManifests(id string, mode specs.KubernetesManifestGroupSpec_Mode) {
	f.t.Helper()

	group := omni.NewKubernetesManifestGroup(id)
	group.Metadata().Labels().Set(omni.LabelCluster, "c")
	group.TypedSpec().Value.Mode = mode

	if err := group.TypedSpec().Value.SetUncompressedData([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: databases}\n")); err != nil {
		f.t.Fatal(err)
	}

	if err := f.omni.State().Create(f.t.Context(), group); err != nil {
		f.t.Fatal(err)
	}
}

// hasManifests reports whether Omni has a manifest group.
func (f *fleet) hasManifests(id string) bool {
	f.t.Helper()

	_, err := safe.StateGetByID[*omni.KubernetesManifestGroup](f.t.Context(), f.omni.State(), id)
	if err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}

	return err == nil
}

// removeInOmni destroys a cluster as somebody in Omni's interface would.
func (f *fleet) removeInOmni(name string) {
	f.t.Helper()

	st, sets := f.omni.State(), f.view(name).Machines

	// The cluster first, so that nobody plans anything for it meanwhile.
	if _, err := st.Teardown(f.t.Context(), omni.NewCluster(name).Metadata()); err != nil {
		f.t.Fatal(err)
	}

	for set := range sets {
		if err := st.TeardownAndDestroy(f.t.Context(), omni.NewMachineSet(set).Metadata()); err != nil && !state.IsNotFoundError(err) {
			f.t.Fatal(err)
		}
	}

	if err := st.TeardownAndDestroy(f.t.Context(), omni.NewCluster(name).Metadata()); err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}

	f.waitRemoteGone(name)
}

// removeSetInOmni destroys a machine set as somebody with omnictl would.
func (f *fleet) removeSetInOmni(id string) {
	f.t.Helper()

	if err := f.omni.State().TeardownAndDestroy(f.t.Context(), omni.NewMachineSet(id).Metadata()); err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}
}

// absent returns an error as long as Omni has the machine set in cluster c.
func (f *fleet) absent(set string) error {
	if _, found := f.view("c").Machines[set]; found {
		return fmt.Errorf("Omni has %s", set)
	}

	return nil
}
