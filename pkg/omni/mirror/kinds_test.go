package mirror

import (
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestKindOf(t *testing.T) {
	for resourceType, want := range map[string]string{
		omnires.ClusterType:                          "Cluster",
		omnires.MachineSetType:                       "MachineSet",
		omnires.MachineSetNodeType:                   "MachineSetNode",
		omnires.ConfigPatchType:                      "ConfigPatch",
		omnires.ExtensionsConfigurationType:          "ExtensionsConfiguration",
		omnires.KubernetesManifestGroupType:          "KubernetesManifestGroup",
		omnires.KubernetesHealthCheckType:            "KubernetesHealthCheck",
		omnires.KernelArgsType:                       "KernelArgs",
		omnires.ClusterStatusType:                    "ClusterStatus",
		omnires.ClusterMachineStatusType:             "ClusterMachineStatus",
		omnires.LoadBalancerStatusType:               "LoadBalancerStatus",
		omnires.ClusterUUIDType:                      "ClusterUUID",
		omnires.ClusterKubernetesManifestsStatusType: "ClusterKubernetesManifestsStatus",
		omnires.ClusterMachineRequestStatusType:      "ClusterMachineRequestStatus",
		omni.MachineInstallDiskConfigType:            "MachineInstallDiskConfig",
		"Links.omni.sidero.dev":                      "Link",
		"Something":                                  "Something",
	} {
		if got := omni.KindOf(resourceType); got != want {
			t.Errorf("%s is %q, want %q", resourceType, got, want)
		}
	}
}

func TestMirroredKindsAreDistinct(t *testing.T) {
	seen := map[string]bool{}

	for _, kind := range mirroredKinds() {
		if seen[kind.resourceType] {
			t.Errorf("%s twice", kind.resourceType)
		}

		seen[kind.resourceType] = true
	}

	if len(seen) != 22 {
		t.Errorf("%d kinds", len(seen))
	}
}
