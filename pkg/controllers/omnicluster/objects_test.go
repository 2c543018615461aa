package omnicluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func meta(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: uid, Generation: 1, CreationTimestamp: metav1.Unix(1700000000, 0)}
}

func newCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: meta(testCluster, "uid-demo"),
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: "omni"},
			Kubernetes:    v1alpha1.OmniClusterKubernetes{Version: "v1.35.1"},
			Talos:         v1alpha1.OmniClusterTalos{Version: "v1.13.3"},
			ChangePolicy:  v1alpha1.ChangePolicyApply,
		},
	}
}

func newControlPlane(name string, machines ...string) *v1alpha1.OmniControlPlane {
	return &v1alpha1.OmniControlPlane{
		ObjectMeta: meta(name, types.UID("uid-"+name)),
		Spec: v1alpha1.OmniControlPlaneSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: testCluster}, MachineSetMachines: v1alpha1.MachineSetMachines{Machines: machines},
		},
	}
}

func newWorkers(name, class string, size int32) *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{
		ObjectMeta: meta(name, types.UID("uid-"+name)),
		Spec: v1alpha1.OmniWorkersSpec{
			ClusterRef:         v1alpha1.LocalObjectReference{Name: testCluster},
			MachineSetMachines: v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: class, Size: new(intstr.FromInt32(size))}},
		},
	}
}

// newMachineWithSettings is a document with one of each setting that Omni keeps as a resource of its own.
func newMachineWithSettings(machine string) *v1alpha1.OmniMachine {
	return &v1alpha1.OmniMachine{
		ObjectMeta: meta(machine, types.UID("uid-"+machine)),
		Spec: v1alpha1.OmniMachineSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: testCluster},
			Install:    &v1alpha1.MachineInstall{Disk: "/dev/vda"},
			MachineConfiguration: v1alpha1.MachineConfiguration{
				Patches:          []v1alpha1.Patch{{Name: "swap", Inline: &v1alpha1.FreeForm{Raw: []byte(`{"machine":{"sysctls":{"vm.swappiness":"1"}}}`)}}},
				SystemExtensions: []string{"siderolabs/iscsi-tools"},
				KernelArgs:       []string{"console=ttyS0"},
			},
		},
	}
}
