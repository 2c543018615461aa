package omnitest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// Invented returns an encoded resource without content.
func Invented(resourceType string, number int) *v1alpha1.Resource {
	return &v1alpha1.Resource{
		Metadata: &v1alpha1.Metadata{
			Namespace: "default", Type: resourceType, Id: fmt.Sprintf("invented-%d", number), Version: "1", Phase: "running",
			Labels: map[string]string{},
		},
		Spec: &v1alpha1.Spec{},
	}
}

// Claiming returns a zstd frame of one raw block whose header claims the given size.
func Claiming(size uint64) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, 0xFD2FB528)
	frame = append(frame, 0b11100000) // eight bytes of size, one segment, no checksum, no dictionary
	frame = binary.LittleEndian.AppendUint64(frame, size)

	return append(frame, 1|1<<3, 0, 0, 'x')
}

// Typical returns resources such as a fleet has.
func Typical(t testing.TB) map[string]resource.Resource {
	t.Helper()

	machine := omnires.NewMachineStatus(Machine1)
	status := machine.TypedSpec().Value
	status.TalosVersion, status.Cluster, status.ManagementAddress = "v1.13.2", "demo", "fdae:41e4:649b:9303::2"
	status.Hardware = &specs.MachineStatusSpec_HardwareStatus{Arch: "amd64"}
	status.Network = &specs.MachineStatusSpec_NetworkStatus{Hostname: "worker-1", Addresses: []string{"192.0.2.7/24"}, DefaultGateways: []string{"192.0.2.1"}}

	for range 2 {
		status.Hardware.Processors = append(status.Hardware.Processors, &specs.MachineStatusSpec_HardwareStatus_Processor{CoreCount: 16, Description: "a processor", Manufacturer: "somebody"})
		status.Hardware.Blockdevices = append(status.Hardware.Blockdevices, &specs.MachineStatusSpec_HardwareStatus_BlockDevice{Size: 1 << 40, Model: "disk", LinuxName: "/dev/sda", Serial: "0123456789abcdef"})
		status.Network.NetworkLinks = append(status.Network.NetworkLinks, &specs.MachineStatusSpec_NetworkStatus_NetworkLinkStatus{LinuxName: "eth0", HardwareAddress: "00:00:5e:00:53:01"})
	}

	for _, label := range []string{"arch", "cores", "cpu", "mem", "net", "platform", "region", "zone"} {
		machine.Metadata().Labels().Set("omni.sidero.dev/"+label, "value of "+label)
	}

	patch := Labelled(omnires.NewConfigPatch("500-demo-patch"), "demo")
	if err := patch.TypedSpec().Value.SetUncompressedData(bytes.Repeat([]byte("machine:\n  sysctls:\n    net.core.somaxconn: \"1048576\"\n"), 200)); err != nil {
		t.Fatal(err)
	}

	node := Labelled(omnires.NewMachineSetNode(Machine1, SetNamed("demo", "workers")), "demo")

	return map[string]resource.Resource{
		"machine": machine, "patch": patch, "node": node, "cluster": ClusterNamed("demo"), "set": ClassSet("demo", "workers", "any", 3),
		"manifests": manifestsStatus("demo", 20), "request": failingRequest("demo", "workers"),
	}
}

// manifestsStatus is what Omni says of a cluster's manifests, all of them applied.
func manifestsStatus(cluster string, objects int) *omnires.ClusterKubernetesManifestsStatus {
	status := omnires.NewClusterKubernetesManifestsStatus(cluster)
	group := &specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{
		Phase: specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_APPLIED, Mode: specs.KubernetesManifestGroupSpec_FULL,
		Manifests: map[string]*specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{},
	}

	for number := range objects {
		name := fmt.Sprintf("an-application-%d", number)
		group.Manifests["apps_"+name+"_apps_Deployment"] = &specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{
			Phase: specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_APPLIED, Kind: "Deployment", Group: "apps", Namespace: "apps", Name: name,
		}
	}

	status.TypedSpec().Value.Total = int32(objects)
	status.TypedSpec().Value.Groups = map[string]*specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{"200-cluster-" + cluster + "-apps": group}

	return status
}

// failingRequest is what Omni says of a machine that a provider cannot make.
func failingRequest(cluster, set string) *omnires.ClusterMachineRequestStatus {
	const failure = "failed to clone the template: the datastore has 12 GiB left and the machine needs 40 GiB"

	request := Labelled(omnires.NewClusterMachineRequestStatus(cluster+"-"+set+"-abc123"), cluster)
	request.Metadata().Labels().Set(omnires.LabelMachineSet, cluster+"-"+set)
	request.Metadata().Labels().Set(omnires.LabelWorkerRole, "")
	request.TypedSpec().Value = &specs.ClusterMachineRequestStatusSpec{
		Stage: specs.ClusterMachineRequestStatusSpec_FAILED, ProviderId: "vsphere", Error: failure, Status: "Provision Failed: " + failure,
	}

	return request
}

// Encoded returns the wire encoding of a resource.
func Encoded(t testing.TB, item resource.Resource) []byte {
	t.Helper()

	encoded, err := cosiproto.FromResource(item)
	if err != nil {
		t.Fatal(err)
	}

	wire, err := encoded.Marshal()
	if err != nil {
		t.Fatal(err)
	}

	text, err := wire.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}

	return text
}
