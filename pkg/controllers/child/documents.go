package child

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// document has what differs between the three kinds. All functions are pure.
type document[O loop.Object] struct {
	kind       string
	controller string
	new        func() O
	list       func() client.ObjectList
	// refs returns what a cluster applied last of this kind.
	refs func(v1alpha1.OmniClusterStatus) []v1alpha1.AppliedReference
	// accept decides whether the document counts for the cluster.
	accept func(O, siblings) loop.Outcome
	// readyCondition is the condition of ready; empty if only Ready shows it.
	readyCondition string
	// ready decides whether the machines are ready.
	ready func(document O, cluster *v1alpha1.OmniCluster, synced loop.Outcome) loop.Outcome
	// report writes the status besides the conditions. The cluster is nil if there is none.
	report func(object O, cluster *v1alpha1.OmniCluster, accepted bool)
}

func controlPlane() document[*v1alpha1.OmniControlPlane] {
	return document[*v1alpha1.OmniControlPlane]{
		kind:       "OmniControlPlane",
		controller: "omnicontrolplane",
		new:        func() *v1alpha1.OmniControlPlane { return &v1alpha1.OmniControlPlane{} },
		list:       func() client.ObjectList { return &v1alpha1.OmniControlPlaneList{} },
		refs: func(status v1alpha1.OmniClusterStatus) []v1alpha1.AppliedReference {
			if status.ControlPlaneRef == nil {
				return nil
			}

			return []v1alpha1.AppliedReference{*status.ControlPlaneRef}
		},
		accept:         acceptControlPlane,
		readyCondition: v1alpha1.ConditionMachinesReady,
		ready: func(_ *v1alpha1.OmniControlPlane, cluster *v1alpha1.OmniCluster, _ loop.Outcome) loop.Outcome {
			return judgeSet(cluster, v1alpha1.ControlPlaneSetName)
		},
		report: func(o *v1alpha1.OmniControlPlane, cluster *v1alpha1.OmniCluster, accepted bool) {
			reportSet(&o.Status.MachineSetStatusFields, v1alpha1.ControlPlaneSetName, cluster, accepted)
		},
	}
}

func workers() document[*v1alpha1.OmniWorkers] {
	return document[*v1alpha1.OmniWorkers]{
		kind:           "OmniWorkers",
		controller:     "omniworkers",
		new:            func() *v1alpha1.OmniWorkers { return &v1alpha1.OmniWorkers{} },
		list:           func() client.ObjectList { return &v1alpha1.OmniWorkersList{} },
		refs:           func(status v1alpha1.OmniClusterStatus) []v1alpha1.AppliedReference { return status.WorkersRefs },
		accept:         acceptWorkers,
		readyCondition: v1alpha1.ConditionMachinesReady,
		ready: func(o *v1alpha1.OmniWorkers, cluster *v1alpha1.OmniCluster, _ loop.Outcome) loop.Outcome {
			return judgeSet(cluster, o.EffectiveWorkerSetName())
		},
		report: func(o *v1alpha1.OmniWorkers, cluster *v1alpha1.OmniCluster, accepted bool) {
			reportSet(&o.Status.MachineSetStatusFields, o.EffectiveWorkerSetName(), cluster, accepted)
		},
	}
}

func machine() document[*v1alpha1.OmniMachine] {
	return document[*v1alpha1.OmniMachine]{
		kind:       "OmniMachine",
		controller: "omnimachine",
		new:        func() *v1alpha1.OmniMachine { return &v1alpha1.OmniMachine{} },
		list:       func() client.ObjectList { return &v1alpha1.OmniMachineList{} },
		refs:       func(status v1alpha1.OmniClusterStatus) []v1alpha1.AppliedReference { return status.MachineRefs },
		accept:     acceptMachine,
		ready: func(o *v1alpha1.OmniMachine, cluster *v1alpha1.OmniCluster, synced loop.Outcome) loop.Outcome {
			return judgeMachine(cluster, o.EffectiveMachineID(), synced)
		},
		report: reportMachine,
	}
}

// reportSet writes the status of a machine set. A set that does not count for the cluster has no machines of its own to
// show.
func reportSet(status *v1alpha1.MachineSetStatusFields, name string, cluster *v1alpha1.OmniCluster, accepted bool) {
	status.WorkerSetName = name
	status.ClusterRef, status.Replicas, status.ReadyReplicas, status.Selector = nil, 0, 0, ""

	if cluster == nil || !accepted {
		return
	}

	status.ClusterRef = &v1alpha1.LocalObjectReference{Name: cluster.Name}
	status.Selector = selectorOf(cluster.EffectiveClusterName(), name)

	if set := findSet(cluster, name); set != nil {
		status.Replicas, status.ReadyReplicas = set.Machines.Total, set.Machines.Healthy
	}
}

// selectorOf returns the label selector of a set's machines in Omni.
func selectorOf(cluster, set string) string {
	return fmt.Sprintf("omni.sidero.dev/cluster=%s,omni.sidero.dev/machine-set=%s", labelValue(cluster), labelValue(cluster+"-"+set))
}

// labelValue returns a text that may be the value of a label in Kubernetes. Omni has longer ones, and ones that begin with
// - or _: a HorizontalPodAutoscaler refuses their selector, whatever it measures. A hash in their place selects nothing.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) > 0 {
		return fmt.Sprintf("%x", sha256.Sum224([]byte(text)))
	}

	return text
}

func reportMachine(o *v1alpha1.OmniMachine, cluster *v1alpha1.OmniCluster, accepted bool) {
	status := &o.Status
	status.MachineID = o.EffectiveMachineID()
	status.ClusterRef, status.Stage, status.Connected = nil, "", nil

	if cluster == nil || !accepted {
		return
	}

	status.ClusterRef = &v1alpha1.LocalObjectReference{Name: cluster.Name}

	if state := findMachine(cluster, status.MachineID); state != nil {
		status.Stage, status.Connected = state.Stage, new(state.Connected)
	}
}
