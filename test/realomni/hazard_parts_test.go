//go:build realomni

package realomni

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// partHazards are parts of a cluster that Omni does not accept, or that another cluster has.
func partHazards() []hazard {
	return []hazard{
		{
			// The cluster's document comes last, so that the first sync is of all of them.
			name: "one refused set does not stop the others",
			bare: true,
			when: func(v *victim) {
				v.apply(v.classManifest("bad", "no-such-class"))
				v.apply(v.setManifest("OmniControlPlane", "cp", machine0) + v.setManifest("OmniWorkers", "w", machine1))
				v.apply(v.clusterManifest(""))
			},
			says: []seen{stalled(v1alpha1.ReasonRefused, "no-such-class", "OmniWorkers")},
			left: whole(),
			then: func(v *victim) {
				for document, want := range map[string]string{"ow/" + v.cluster + "-bad": "Refused", "ow/" + v.cluster + "-w": "Applied", "ocp/" + v.cluster + "-cp": "Applied"} {
					v.kubectl("wait", document, `--for=jsonpath={.status.conditions[?(@.type=="Synced")].reason}=`+want, "--timeout=60s")
				}
			},
		},
		{
			name: "machine of another cluster comes free",
			bare: true,
			when: func(v *victim) {
				holder := &victim{scenario: v.scenario, cluster: v.cluster + "-holder"}
				holder.documents("", machine1)
				holder.says(synced())
				v.documents("", machine2)
				v.says(stalled(v1alpha1.ReasonCollision, fmt.Sprintf("%q", holder.cluster), machine0))
				v.kubectl("delete", "ocl/"+holder.cluster, "--timeout=60s")
			},
			// Nobody asks for it to be looked at, and its interval is five minutes.
			says: []seen{synced(), {condition: v1alpha1.ConditionPlanned, status: metav1.ConditionTrue}},
			left: []string{"Cluster", "MachineSet control-planes", "MachineSet w", "MachineSetNode " + machine0, "MachineSetNode " + machine2},
		},
	}
}
