//go:build realomni

package realomni

import (
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func stalled(reason string, words ...string) seen {
	return seen{v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, words}
}

func synced() seen {
	return seen{condition: v1alpha1.ConditionSynced, status: metav1.ConditionTrue}
}

// hazards are the accidents that an Omni without machines can show.
func hazards() []hazard {
	return append(append(documentHazards(), handmadeHazards()...), partHazards()...)
}

func documentHazards() []hazard {
	return []hazard{
		{
			name: "all pruned at once with orphan",
			spec: "  deletePolicy: {orphan: true}",
			when: func(v *victim) {
				v.kubectl("delete", "ow/"+v.cluster+"-w", "ocp/"+v.cluster+"-cp", "ocl/"+v.cluster, "--timeout=60s")
			},
			left: whole(),
			then: func(v *victim) {
				if owner := v.view().Annotations[v1alpha1.MarkOwnerUID]; owner != "" {
					v.Errorf("the mark stayed: %s", owner)
				}
			},
		},
		{
			name: "suspended then deleted",
			when: func(v *victim) {
				v.merge(`{"spec":{"suspend":true}}`)
				v.kubectl("delete", "ocl", v.cluster, "--timeout=60s")
			},
		},
		{
			name: "control plane document missing for long",
			when: func(v *victim) { v.kubectl("delete", "ocp", v.cluster+"-cp") },
			says: []seen{{v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing, []string{"OmniControlPlane"}}},
			left: whole(),
		},
		{
			name: "set renamed within the settle time",
			when: func(v *victim) {
				v.kubectl("delete", "ow", v.cluster+"-w")
				v.apply(v.setManifest("OmniWorkers", "new", machine2))
			},
			says: []seen{synced()},
			left: []string{"Cluster", "MachineSet control-planes", "MachineSet new", "MachineSetNode " + machine0, "MachineSetNode " + machine2},
		},
		{
			name: "machine moved within the settle time",
			when: func(v *victim) {
				v.apply(v.setManifest("OmniWorkers", "w"))
				v.apply(v.setManifest("OmniWorkers", "other", machine1))
			},
			says: []seen{synced()},
			left: whole("MachineSet other"),
			then: func(v *victim) {
				if got := v.view().Machines[v.cluster+"-other"]; got != 1 {
					v.Errorf("%d machines in the other set", got)
				}
			},
		},
		{
			name: "late refusal leaves half a template",
			bare: true,
			when: func(v *victim) {
				v.documents("", machine1)
				v.apply(v.classManifest("class", "no-such-class"))
			},
			says: []seen{stalled(v1alpha1.ReasonRefused, "no-such-class")},
			left: whole(),
		},
		{
			name: "two objects in one namespace",
			when: func(v *victim) {
				v.apply(twinManifests(v.cluster))
				v.kubectl("wait", "ocl/twin", "--for=jsonpath={.status.conditions[?(@.type==\"Stalled\")].reason}=NotOwned", "--timeout=60s")
				v.kubectl("delete", "ocl/twin", "ocp/twin-cp", "--timeout=60s")
			},
			says: []seen{synced()},
			left: whole(),
		},
		{
			name: "name taken by hand before",
			bare: true,
			when: func(v *victim) {
				v.foreign()
				v.documents("", machine1)
			},
			says: []seen{stalled(v1alpha1.ReasonNotOwned, "spec.adopt")},
			left: []string{"Cluster", "MachineSet by-hand", "MachineSet control-planes"},
		},
		{
			name: "taken over by adoption",
			bare: true,
			when: func(v *victim) {
				v.foreign()
				v.documents("  adopt: true", machine1)
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, "by-hand", "approvedPlan")},
			left: whole("MachineSet by-hand"),
			then: func(v *victim) {
				v.merge(fmt.Sprintf(`{"spec":{"approvedPlan":%q}}`, v.read(".status.plan.hash")))
				v.says(synced())

				if _, there := v.view().Machines[v.cluster+"-by-hand"]; there {
					v.Error("the approved destruction was not carried out")
				}
			},
		},
	}
}

func handmadeHazards() []hazard {
	return []hazard{
		{
			name: "cluster locked in Omni then deleted",
			when: func(v *victim) {
				v.lock()
				v.says(stalled(v1alpha1.ReasonRemoteLocked, "unlock"))
				v.kubectl("delete", "ocl", v.cluster, "--wait=false")
			},
			says: []seen{{v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonRemoteLocked, []string{"unlock", "orphan"}}},
			left: whole(),
		},
		{
			name: "machine locked in Omni",
			when: func(v *victim) {
				v.lockMachine(machine1)
				v.merge(`{"spec":{"labels":{"staged":"yes"}}}`)
			},
			says: []seen{synced()},
			left: whole(),
			then: func(v *victim) {
				node, err := safe.StateGetByID[*omni.MachineSetNode](v.Context(), v.other, machine1)
				if err != nil {
					v.Fatal(err)
				}

				if _, locked := node.Metadata().Annotations().Get(omni.MachineLocked); !locked || v.view().Labels["staged"] != "yes" {
					v.Errorf("locked: %v, labels %v", locked, v.view().Labels)
				}
			},
		},
		{
			name: "patch added in Omni",
			when: func(v *victim) {
				patch := omni.NewConfigPatch("500-" + v.cluster)
				if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {sysctls: {a: b}}")); err != nil {
					v.Fatal(err)
				}

				v.create(patch)
			},
			left: whole(), // without the patch
		},
		{
			name: "set added in Omni",
			when: func(v *victim) { v.create(v.handmadeSet("by-hand", omni.LabelWorkerRole)) },
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, "by-hand", "not made by this object")},
			left: whole("MachineSet by-hand"),
		},
		{
			name: "machine added in Omni",
			when: func(v *victim) {
				v.create(omni.NewMachineSetNode(machine2, v.handmadeSet("w", omni.LabelWorkerRole)))
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, machine2, "not put there by this object")},
			left: whole("MachineSetNode " + machine2),
		},
		{
			name: "class set grown in Omni",
			when: func(v *victim) {
				v.createClass()
				v.apply(v.classManifest("class", v.cluster))
				v.says(synced())
				v.resize("class", 5)
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, "class", "as this object last applied")},
			left: whole("MachineSet class"),
			then: func(v *victim) {
				set, err := safe.StateGetByID[*omni.MachineSet](v.Context(), v.other, v.cluster+"-class")
				if err != nil {
					v.Fatal(err)
				}

				if got := set.TypedSpec().Value.MachineAllocation.MachineCount; got != 5 {
					v.Errorf("the set was shrunk to %d", got)
				}
			},
		},
		{
			name: "Omni restored without the cluster",
			when: func(v *victim) { v.removeInOmni() },
			says: []seen{stalled(v1alpha1.ReasonRemoteClusterGone, v1alpha1.AnnotationRecreate)},
		},
		{
			name: "our mark on another cluster",
			when: func(v *victim) {
				uid := v.read(".metadata.uid")
				v.removeInOmni()
				v.foreign()

				if err := omnisim.AnnotateCluster(v.Context(), v.other, v.cluster, v1alpha1.MarkOwnerUID, uid); err != nil {
					v.Fatal(err)
				}
			},
			says: []seen{stalled(v1alpha1.ReasonRemoteClusterReplaced, v1alpha1.AnnotationRecreate)},
			left: []string{"Cluster", "MachineSet by-hand", "MachineSet control-planes"},
			then: func(v *victim) { v.merge(`{"spec":{"deletePolicy":{"orphan":true}}}`) },
		},
	}
}

// createClass makes a machine class of the cluster's name that no machine matches.
func (v *victim) createClass() {
	v.Helper()

	class := omni.NewMachineClass(v.cluster)
	class.TypedSpec().Value.MatchLabels = []string{"machines = none"}

	if err := v.other.Create(v.Context(), class); err != nil {
		v.Fatal(err)
	}
}

// classManifest is a worker set of two machines of a class.
func (v *victim) classManifest(name, class string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniWorkers
metadata: {name: %s-%s}
spec:
  clusterRef: {name: %[1]s}
  workerSetName: %[2]s
  machineClass: {name: %[3]s, size: 2}
`, v.cluster, name, class)
}

// twinManifests are a second object for a cluster, through a second connection.
func twinManifests(cluster string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: twin}
spec:
  connectionRef: {name: second}
  clusterName: %s
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: twin-cp}
spec:
  clusterRef: {name: twin}
  machines: [%s]
`, cluster, machine2)
}

func (v *victim) lock() {
	v.Helper()

	if err := omnisim.AnnotateCluster(v.Context(), v.other, v.cluster, omni.ClusterLocked, ""); err != nil {
		v.Fatal(err)
	}
}

func (v *victim) lockMachine(id string) {
	v.Helper()

	if _, err := safe.StateUpdateWithConflicts(v.Context(), v.other, omni.NewMachineSetNode(id, omni.NewMachineSet("")).Metadata(),
		func(node *omni.MachineSetNode) error {
			node.Metadata().Annotations().Set(omni.MachineLocked, "")

			return nil
		}); err != nil {
		v.Fatal(err)
	}
}

// resize changes the size of a set of a class.
func (v *victim) resize(set string, size uint32) {
	v.Helper()

	if _, err := safe.StateUpdateWithConflicts(v.Context(), v.other, omni.NewMachineSet(v.cluster+"-"+set).Metadata(), func(set *omni.MachineSet) error {
		set.TypedSpec().Value.MachineAllocation.MachineCount = size

		return nil
	}); err != nil {
		v.Fatal(err)
	}
}
