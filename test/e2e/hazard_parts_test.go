package e2e

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// missingClass is a machine class that Omni does not have.
const missingClass = "no-such-class"

// partHazards are parts of a cluster that Omni refuses, or that another cluster has.
func partHazards() []hazard {
	return []hazard{
		{
			// The cluster's document comes last, so that there is one plan with all of it.
			name: "one refused set does not stop the others",
			bare: true,
			when: func(f *fleet) {
				f.apply(workersManifest("bad", "c", classOf(missingClass, 1)), workersManifest("c-w", "c", classOf(pool, 2)),
					controlPlaneManifest("c-cp", "c", f.machines[0]))
				f.known("ow/bad", "ow/c-w", "ocp/c-cp")
				f.apply(clusterManifest("c"))
			},
			says:     []seen{stalled(v1alpha1.ReasonRefused, `OmniWorkers "bad"`, missingClass, `MachineSet "c-bad"`)},
			machines: sizes(2, nil),
			then: func(f *fleet) {
				f.waitCondition("ow", "c-w", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.waitCondition("ocp", "c-cp", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

				if said := f.waitCondition("ow", "bad", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRefused); !strings.Contains(said, missingClass) {
					f.t.Errorf("the document says %q", said)
				}

				var applied []string
				for _, set := range get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.AppliedMachineSets {
					applied = append(applied, set.ID)
				}

				if diff := cmp.Diff([]string{"c-c-w", "c-control-planes"}, applied); diff != "" {
					f.t.Errorf("recorded as applied (-want +got):\n%s", diff)
				}

				if err := f.omni.AddMachineClass(missingClass, "pool = a"); err != nil {
					f.t.Fatal(err)
				}

				f.ready("c")
				f.waitCondition("ow", "bad", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
			},
		},
		{
			name:  "set renamed to one that is refused",
			given: func(f *fleet) { f.apply(workersManifest("old", "c", classOf(pool, 1))) },
			when: func(f *fleet) {
				f.apply(workersManifest("new", "c", classOf(missingClass, 1)))
				f.run("delete", "ow", "old")
			},
			says:     []seen{stalled(v1alpha1.ReasonRefused, `OmniWorkers "new"`, missingClass)},
			machines: sizes(2, map[string]int{"old": 1}),
			then: func(f *fleet) {
				f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, "", missingClass, `MachineSet "c-old"`)
				f.apply(workersManifest("new", "c", classOf(pool, 1)))
				f.waitMachines("c", "new", 1)
				f.ready("c")
			},
			finally: []string{"MachineSet c-old"},
		},
		{
			name: "machine comes free before this cluster is made",
			bare: true,
			when: func(f *fleet) {
				f.cluster("other")
				f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)), clusterManifest("c"))
				f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonCollision, `cluster "other"`)
				f.run("delete", "ocl", "other", "--timeout=60s")
			},
			// Nobody asks for it to be looked at, and its interval is five minutes.
			says:      []seen{ready()},
			destroyed: []string{"Cluster other"},
			machines:  sizes(2, nil),
		},
		{
			name: "machine comes free after this cluster was made",
			when: func(f *fleet) {
				f.apply(clusterManifest("other"), controlPlaneManifest("other-cp", "other", f.machines[1]))
				f.waitCondition("ocl", "other", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.apply(workersManifest("extra", "c", "machines: ["+f.machines[1]+"]"))
				f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonCollision, `cluster "other"`)
				f.run("delete", "ocl", "other", "--timeout=60s")
			},
			says:      []seen{ready()},
			destroyed: []string{"Cluster other"},
			machines:  sizes(2, map[string]int{"extra": 1}),
		},
	}
}
