package omni

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// typical are resources as a fleet has them.
func typical(t testing.TB) map[string]resource.Resource {
	t.Helper()

	machine := omnires.NewMachineStatus(machine1)
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

	patch := labelled(omnires.NewConfigPatch("500-demo-patch"), "demo")
	if err := patch.TypedSpec().Value.SetUncompressedData(bytes.Repeat([]byte("machine:\n  sysctls:\n    net.core.somaxconn: \"1048576\"\n"), 200)); err != nil {
		t.Fatal(err)
	}

	node := labelled(omnires.NewMachineSetNode(machine1, setNamed("demo", "workers")), "demo")

	return map[string]resource.Resource{"machine": machine, "patch": patch, "node": node, "cluster": clusterNamed("demo"), "set": classSet("demo", "workers", "any", 3)}
}

// A weight is the memory that a resource takes in a mirror, or a little more.
func TestWeightIsTheMemory(t *testing.T) {
	const copies = 4000

	for name, item := range typical(t) {
		t.Run(name, func(t *testing.T) {
			weight, err := weightOf(item)
			if err != nil {
				t.Fatal(err)
			}

			// A compressed text counts as long as it becomes, although it is kept as it is.
			if patch, ok := item.(*omnires.ConfigPatch); ok {
				inflated, _ := zstdSize(patch.TypedSpec().Value.GetCompressedData())
				weight -= inflated
			}

			// What earlier tests left behind may go meanwhile.
			for range 5 {
				taken := memoryOf(t, item, copies)
				t.Logf("weighs %d bytes, takes %d", weight, taken)

				if taken <= weight*5/4 && weight <= 3*taken {
					return
				}
			}

			t.Error("the weight is not the memory")
		})
	}
}

// memoryOf is what one of many copies of a resource takes in a table.
func memoryOf(t *testing.T, item resource.Resource, copies int) int64 {
	t.Helper()

	wire := encoded(t, item)
	table := newStore(mirroredKinds())
	before := liveHeap()

	for number := range copies {
		table.put(withWeight(t, wire, fmt.Sprintf("%s-%d", item.Metadata().ID(), number)))
	}

	taken := int64(liveHeap()) - int64(before)

	runtime.KeepAlive(table)

	return taken / int64(copies)
}

func liveHeap() uint64 {
	var stats runtime.MemStats

	runtime.GC()
	runtime.ReadMemStats(&stats)

	return stats.HeapAlloc
}

func encoded(t testing.TB, item resource.Resource) []byte {
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

// withWeight decodes a resource under another ID.
func withWeight(t testing.TB, wire []byte, id string) item {
	t.Helper()

	var sent v1alpha1.Resource
	if err := sent.UnmarshalVT(wire); err != nil {
		t.Fatal(err)
	}

	sent.Metadata.Id = id

	envelope, err := cosiproto.Unmarshal(&sent)
	if err != nil {
		t.Fatal(err)
	}

	decoded, err := cosiproto.UnmarshalResource(envelope)
	if err != nil {
		t.Fatal(err)
	}

	return item{Resource: decoded}
}

func TestZstdSize(t *testing.T) {
	patch, ok := typical(t)["patch"].(*omnires.ConfigPatch)
	if !ok || len(patch.TypedSpec().Value.GetCompressedData()) == 0 {
		t.Fatal("the patch is not compressed")
	}

	real := patch.TypedSpec().Value.GetCompressedData()
	repeated := func(size int) []byte { // a window of 1 KiB, no size, and one byte repeated in blocks
		frame := []byte{0x28, 0xB5, 0x2F, 0xFD, 0, 0}

		for ; size > maxBlock; size -= maxBlock {
			frame = append(frame, byte(1<<1|maxBlock<<3&0xFF), byte(maxBlock<<3>>8&0xFF), byte(maxBlock<<3>>16), 'x')
		}

		return append(frame, byte(1|1<<1|size<<3&0xFF), byte(size<<3>>8&0xFF), byte(size<<3>>16), 'x')
	}

	for name, test := range map[string]struct {
		text []byte
		want int64
		err  error
	}{
		"what Omni sends":   {real, 10800, nil},
		"repeated":          {repeated(3 * maxBlock), 3 * maxBlock, nil},
		"repeated for ever": {repeated(64 << 20), 64 << 20, nil},
		"a claim":           {claiming(1 << 40), maxInflated + 1, nil},
		"two frames":        {append(bytes.Clone(real), claiming(1<<40)...), 0, errMalformed},
		"cut off":           {real[:len(real)-1], 0, errMalformed},
		"nothing":           {nil, 0, errMalformed},
		"garbage":           {[]byte("machine:"), 0, errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := zstdSize(test.text)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

func TestMalformedAnswersAreRefused(t *testing.T) {
	nested := []byte{}
	for range 2 * maxNesting {
		nested = append([]byte{0x1a, byte(min(len(nested), 127))}, nested[:min(len(nested), 127)]...)
	}

	descriptor := specDescriptor(omnires.MachineStatusType)

	for name, wire := range map[string][]byte{
		"a tag alone":       {0x0a},
		"longer than it is": {0x0a, 0x7f, 'x'},
		"no field":          {0x00, 0x00},
	} {
		if _, err := weigh(descriptor, wire); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := weigh(descriptor, nested); err != nil && !errors.Is(err, errMalformed) {
		t.Errorf("nested: %v", err)
	}
}

func TestManyLabelsAreRefused(t *testing.T) {
	sent := invented(omnires.ClusterType, 0)
	for number := range maxMetadataEntries + 1 {
		sent.Metadata.Labels[strings.Repeat("x", number)] = ""
	}

	if _, err := weighResource(sent); !errors.Is(err, ErrTooMuchData) {
		t.Errorf("error %v", err)
	}
}
