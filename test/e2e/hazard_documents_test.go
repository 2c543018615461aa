package e2e

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	ours "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// sizes are machines of the cluster c: the control plane, its first worker set, and others by name.
func sizes(workers int, others map[string]int) map[string]int {
	all := map[string]int{"c-control-planes": 1, "c-c-w": workers}
	for name, size := range others {
		all["c-"+name] = size
	}

	return all
}

// documentHazards are accidents with the documents of a cluster.
func documentHazards() []hazard {
	return []hazard{
		{
			name: "all pruned at once with orphan",
			spec: "  deletePolicy: {orphan: true}",
			when: func(f *fleet) { f.run("delete", "ow/c-w", "ocp/c-cp", "ocl/c", "--timeout=60s") },
			then: func(f *fleet) {
				if owner := f.view("c").Annotations[v1alpha1.MarkOwnerUID]; owner != "" {
					f.t.Errorf("the mark stayed: %s", owner)
				}
			},
		},
		{
			// In the order of Flux: one kind after the other, and no document but the OmniCluster has a finalizer.
			name:  "settings of machines pruned before an orphan",
			spec:  "  deletePolicy: {orphan: true}",
			given: func(f *fleet) { f.apply(settingsManifest(f.machines[0], "c")) },
			when: func(f *fleet) {
				f.remove("ow", "c-w")
				time.Sleep(settleTime / 2)
				f.remove("om", f.machines[0])
				time.Sleep(settleTime / 2)
				f.remove("ocp", "c-cp")
				f.run("delete", "ocl", "c", "--timeout=60s")
			},
			then: func(f *fleet) {
				if patches := f.view("c").Patches; len(patches) != 1 {
					f.t.Errorf("patches %v", patches)
				}

				f.waitDisk(f.machines[0], ours.MachineInstallDiskConfigSpec{Disk: "/dev/vda"}, true)
			},
		},
		{
			name:      "settings of a machine removed",
			given:     func(f *fleet) { f.apply(settingsManifest(f.machines[0], "c")) },
			when:      func(f *fleet) { f.remove("om", f.machines[0]) },
			says:      []seen{notSynced(v1alpha1.ReasonWaitingToSettle, `ConfigPatch "400-cm-`), ready()},
			destroyed: []string{"ConfigPatch 400-cm-m0-net", "MachineInstallDiskConfig m0"},
		},
		{
			name:      "all pruned at once without orphan",
			when:      func(f *fleet) { f.run("delete", "ow/c-w", "ocp/c-cp", "ocl/c", "--timeout=60s") },
			destroyed: []string{"Cluster c"},
			machines:  map[string]int{},
		},
		{
			name: "children pruned long before an orphan",
			spec: "  deletePolicy: {orphan: true}",
			when: func(f *fleet) { f.run("delete", "ow/c-w", "ocp/c-cp") },
			says: []seen{{v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing, []string{"OmniControlPlane"}}},
			then: func(f *fleet) {
				f.run("delete", "ocl", "c", "--timeout=60s")
				f.unchanged("c")
			},
		},
		{
			name:      "workers pruned long before an orphan",
			spec:      "  deletePolicy: {orphan: true}",
			when:      func(f *fleet) { f.run("delete", "ow/c-w") },
			says:      []seen{notSynced(v1alpha1.ReasonWaitingToSettle, `MachineSet "c-c-w"`)},
			destroyed: []string{"MachineSet c-c-w"},
			machines:  map[string]int{"c-control-planes": 1},
			then:      func(f *fleet) { f.run("delete", "ocl", "c", "--timeout=60s") },
		},
		{
			name: "control plane document replaced",
			when: func(f *fleet) {
				if _, err := f.tryInput(controlPlaneManifest("c-cp", "c", f.machines[0]), "replace", "--force", "-f", "-"); err != nil {
					f.t.Fatal(err)
				}

				f.ready("c")
			},
		},
		{
			name: "control plane document missing for long",
			when: func(f *fleet) { f.run("delete", "ocp", "c-cp") },
			says: []seen{{v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing, []string{"OmniControlPlane"}}},
			then: func(f *fleet) {
				f.apply(controlPlaneManifest("c-cp-2", "c", f.machines[0]))
				f.ready("c")
				f.unchanged("c")
			},
		},
		{
			// The settle time starts when a plan can be made again, so that the set is back before it ends.
			name: "documents come back one by one",
			when: func(f *fleet) {
				if !f.inTime(func() {
					f.remove("ow", "c-w")
					f.hesitate()
					f.remove("ocp", "c-cp")
				}) {
					return
				}

				f.waitCondition("ocl", "c", v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing)
				time.Sleep(settleTime) // the old settle time would be over
				f.follow("c")
				f.inTime(func() {
					f.put(controlPlaneManifest("c-cp", "c", f.machines[0]))
					f.hesitate(`MachineSet "c-c-w"`)
					f.put(workersManifest("c-w", "c", classOf(pool, 2)))
				})
			},
			says: []seen{ready()},
		},
		{
			name:  "set renamed within the settle time",
			given: func(f *fleet) { f.apply(workersManifest("old", "c", classOf(pool, 1))) },
			when: func(f *fleet) {
				f.inTime(func() {
					f.remove("ow", "old")
					f.put(workersManifest("new", "c", classOf(pool, 1)))
				})
			},
			says:      []seen{notSynced(v1alpha1.ReasonWaitingToSettle, `MachineSet "c-old"`)},
			destroyed: []string{"MachineSet c-old"},
			machines:  sizes(2, map[string]int{"new": 1}),
			then:      func(f *fleet) { f.ready("c") },
		},
		{
			name:  "set renamed after the settle time",
			given: func(f *fleet) { f.apply(workersManifest("old", "c", classOf(pool, 1))) },
			when: func(f *fleet) {
				f.run("delete", "ow", "old")
				f.settle("c")
				f.apply(workersManifest("new", "c", classOf(pool, 1)))
				f.waitMachines("c", "new", 1)
			},
			says:      []seen{ready()},
			destroyed: []string{"MachineSet c-old"},
			machines:  sizes(2, map[string]int{"new": 1}),
		},
		{
			name:  "machine in two sets for a moment",
			given: twoWorkerSets,
			when:  func(f *fleet) { f.apply(workersManifest("b", "c", "machines: ["+f.machines[1]+"]")) },
			says:  []seen{stalled(v1alpha1.ReasonDuplicateMachine, `"a"`, `"b"`)},
			then: func(f *fleet) {
				f.apply(workersManifest("a", "c", "machines: ["+f.machines[2]+"]"))
				f.waitMachines("c", "b", 1)
				f.ready("c")
			},
			finally: []string{"MachineSetNode m1"},
		},
		{
			name:  "machine moved within the settle time",
			given: twoWorkerSets,
			when: func(f *fleet) {
				f.inTime(func() {
					f.put(workersManifest("a", "c", "machines: ["+f.machines[2]+"]"), workersManifest("b", "c", "machines: ["+f.machines[1]+"]"))
				})
			},
			says:      []seen{notSynced(v1alpha1.ReasonWaitingToSettle, "MachineSetNode")},
			destroyed: []string{"MachineSetNode m1"},
			machines:  sizes(2, map[string]int{"a": 1, "b": 1}),
			then:      func(f *fleet) { f.ready("c") },
		},
		{
			name:  "machine moved after the settle time",
			given: twoWorkerSets,
			when: func(f *fleet) {
				f.apply(workersManifest("a", "c", "machines: ["+f.machines[2]+"]"))
				f.settle("c")
				f.apply(workersManifest("b", "c", "machines: ["+f.machines[1]+"]"))
				f.waitMachines("c", "b", 1)
			},
			says:      []seen{ready()},
			destroyed: []string{"MachineSetNode m1"},
			machines:  sizes(2, map[string]int{"a": 1, "b": 1}),
		},
		{
			name:  "machine replaced by a mistyped one",
			given: twoWorkerSets,
			when:  func(f *fleet) { f.apply(workersManifest("a", "c", "machines: ["+f.machines[1]+", "+mistyped+"]")) },
			says:  []seen{stalled(v1alpha1.ReasonAwaitingApproval, "machine "+mistyped+" is not registered in Omni", `MachineSet "c-a"`, "approvedPlan")},
			then: func(f *fleet) {
				twoWorkerSets(f)
				f.ready("c")
			},
		},
		{
			name: "only machine of the control plane mistyped",
			when: func(f *fleet) { f.apply(controlPlaneManifest("c-cp", "c", mistyped)) },
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, "machine "+mistyped+" is not registered in Omni", `MachineSet "c-control-planes"`, "approvedPlan")},
			then: func(f *fleet) {
				f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]))
				f.ready("c")
			},
		},
		{
			name:  "set renamed with a mistyped machine",
			given: twoWorkerSets,
			when: func(f *fleet) {
				f.inTime(func() {
					f.remove("ow", "a")
					f.put(workersManifest("renamed", "c", "machines: ["+f.machines[1]+", "+mistyped+"]"))
				})
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, "machine "+mistyped+" is not registered in Omni", `MachineSet "c-renamed"`, "approvedPlan")},
			then: func(f *fleet) {
				f.remove("ow", "renamed")
				twoWorkerSets(f)
				f.ready("c")
			},
		},
		{
			name:  "machine list emptied",
			given: twoWorkerSets,
			when:  func(f *fleet) { f.run("patch", "ow", "a", "--type=merge", "-p", `{"spec":{"machines":null}}`) },
			says: []seen{
				notSynced(v1alpha1.ReasonWaitingToSettle, "MachineSetNode", `OmniWorkers "a" lists no machine any more`),
				{v1alpha1.ConditionReady, metav1.ConditionTrue, "", []string{"destroyed since", `no machine is listed in OmniWorkers "a"`}},
			},
			destroyed: []string{"MachineSetNode m1", "MachineSetNode m2"},
			machines:  sizes(2, map[string]int{"a": 0, "b": 0}),
			then: func(f *fleet) {
				f.wait("warnings", func() error {
					events := f.run("get", "events", "-o", `jsonpath={range .items[*]}{.type} {.reason} {.involvedObject.kind} {.message}{"\n"}{end}`)
					for _, object := range []string{"OmniCluster", "OmniWorkers"} {
						if !strings.Contains(events, "Warning WillDestroy "+object) {
							return fmt.Errorf("none of %s in %s", object, events)
						}
					}

					return nil
				})
			},
		},
		{
			name: "set comes back while Omni destroys it",
			when: func(f *fleet) {
				f.omni.Pause()
				f.run("delete", "ow", "c-w")
				f.wait("the teardown to be asked for", func() error {
					if len(f.destroyed()) == 0 {
						return fmt.Errorf("nothing destroyed yet")
					}

					return nil
				})
				f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
				f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "c-c-w")
				f.omni.Resume()
				f.waitMachines("c", "c-w", 2)
			},
			says:      []seen{ready()},
			destroyed: []string{"MachineSet c-c-w"},
		},
		{
			name:     "class set scaled to 0",
			when:     func(f *fleet) { f.run("scale", "omniworkers/c-w", "--replicas=0") },
			says:     []seen{notSynced(v1alpha1.ReasonWaitingToSettle, `MachineSet "c-c-w"`), ready()},
			machines: sizes(0, nil),
		},
		{
			name: "class set scaled to 0 with confirmation",
			spec: "  changePolicy: ConfirmDestructive",
			when: func(f *fleet) { f.run("scale", "omniworkers/c-w", "--replicas=0") },
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, "approvedPlan")},
			then: func(f *fleet) {
				f.approve("c")
				f.waitMachines("c", "c-w", 0)
				f.ready("c")
			},
		},
		{
			name: "manifest removed from the document",
			when: func(f *fleet) {
				f.manifests("a", "b")
				f.ready("c")

				early := ""

				if f.inTime(func() {
					f.manifests()
					f.hesitate(`KubernetesManifestGroup "200-cluster-c-a"`, `KubernetesManifestGroup "201-cluster-c-b"`)
					early = f.destroyedOtherThan()
				}) && early != "" {
					f.t.Error(early)
				}
			},
			says:      []seen{ready()},
			destroyed: []string{"KubernetesManifestGroup 200-cluster-c-a", "KubernetesManifestGroup 201-cluster-c-b"},
		},
		{
			name: "manifest removed and put back",
			when: func(f *fleet) {
				f.manifests("a", "b")
				f.ready("c")
				f.inTime(func() {
					f.manifests()
					f.hesitate()
					f.manifests("a", "b")
				})
			},
			says: []seen{ready()},
		},
		{
			name: "manifest removed with confirmation",
			spec: "  changePolicy: ConfirmDestructive",
			when: func(f *fleet) {
				f.manifests("a", "b")
				f.ready("c")
				f.manifests("b")
			},
			// The other one moves up in the list, and keeps its ID in Omni.
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `KubernetesManifestGroup "200-cluster-c-a"`, "approvedPlan")},
			then: func(f *fleet) {
				f.approve("c")
				f.ready("c")
			},
			finally: []string{"KubernetesManifestGroup 200-cluster-c-a"},
		},
		{
			// The cluster's document comes last, so that there is one plan with all of it.
			name: "late refusal leaves half a template",
			bare: true,
			when: func(f *fleet) {
				f.apply(workersManifest("c-w", "c", classOf("no-such-class", 2)), controlPlaneManifest("c-cp", "c", f.machines[0]))
				f.known("ow/c-w", "ocp/c-cp")
				f.apply(clusterManifest("c"))
			},
			says:     []seen{stalled(v1alpha1.ReasonRefused, "no-such-class", `MachineSet "c-c-w"`)},
			machines: map[string]int{"c-control-planes": 1},
			then: func(f *fleet) {
				f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
				f.ready("c")
				f.unchanged("c")
			},
		},
	}
}

// mistyped is the UUID of no machine.
const mistyped = "99999999-9999-4999-8999-999999999999"

// twoWorkerSets are a with machines 1 and 2, and b with none.
func twoWorkerSets(f *fleet) {
	f.apply(workersManifest("a", "c", "machines: ["+f.machines[1]+", "+f.machines[2]+"]"), workersManifest("b", "c", "machines: []"))
}

// manifests makes OmniCluster c want these manifests of mode full, each a Namespace of its name.
func (f *fleet) manifests(names ...string) {
	f.t.Helper()

	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"inline":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}]}`, name, name))
	}

	f.merge(`{"spec":{"kubernetes":{"manifests":[` + strings.Join(list, ",") + `]}}}`)
}

// approve approves the plan that an OmniCluster shows.
func (f *fleet) approve(name string) {
	f.t.Helper()

	plan := get[v1alpha1.OmniCluster](f.space, "ocl", name).Status.Plan
	if plan == nil || plan.Hash == "" {
		f.t.Fatalf("no plan to approve: %+v", plan)
	}

	f.run("patch", "ocl", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"approvedPlan":%q}}`, plan.Hash))
}

// settingsManifest is the document of a machine with a disk and a patch.
func settingsManifest(id, cluster string) string {
	return machineManifest(id, cluster, "  install: {disk: /dev/vda}", `  patches: [{name: net, inline: {machine: {env: {NET: "1"}}}}]`)
}
