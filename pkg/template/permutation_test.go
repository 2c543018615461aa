package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// scrambler writes JSON with the same content in another order and with other white space.
type scrambler struct {
	*rand.Rand
}

// write puts the value down. Lists that mean a set, by the name of their field, are shuffled, too.
func (s scrambler) write(out *strings.Builder, field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		s.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })

		parts := make([]string, 0, len(keys))
		for _, key := range keys {
			var part strings.Builder

			fmt.Fprintf(&part, "%s%s:", s.space(), mustJSON(key)+s.space())
			s.write(&part, key, v[key])
			parts = append(parts, part.String())
		}

		out.WriteString("{" + strings.Join(parts, ",") + "}" + s.space())
	case []any:
		v = slices.Clone(v)
		if field == "items" || field == "machines" {
			s.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		}

		out.WriteString("[")

		for i, element := range v {
			if i > 0 {
				out.WriteString(",")
			}

			s.write(out, "", element)
		}

		out.WriteString("]" + s.space())
	default:
		out.WriteString(s.space() + mustJSON(v) + s.space())
	}
}

func (s scrambler) space() string {
	return []string{"", "", " ", "\n", "\t", "\r\n  "}[s.IntN(6)]
}

func mustJSON(value any) string {
	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(value); err != nil {
		panic(err)
	}

	return strings.TrimSpace(out.String())
}

func TestOrderAndWhiteSpaceDoNotCount(t *testing.T) {
	for _, name := range []string{"minimal", "classes", "full", "values"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}

			want := string(render(t, parseInput(t, raw), fixtureValue))

			decoder := json.NewDecoder(bytes.NewReader(raw))
			decoder.UseNumber()

			var content any
			if err := decoder.Decode(&content); err != nil {
				t.Fatal(err)
			}

			for seed := range uint64(100) {
				var scrambled strings.Builder

				scrambler{rand.New(rand.NewPCG(seed, 1))}.write(&scrambled, "", content)

				got := string(render(t, parseInput(t, []byte(scrambled.String())), fixtureValue))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: rendered template (-want +got):\n%s", seed, diff)
				}
			}
		})
	}
}

// The other direction: what means something to Omni does change the bytes.
func TestWhatCountsChangesTheText(t *testing.T) {
	base := string(render(t, loadInput(t, "full"), nil))

	for name, change := range map[string]func(*Input){
		"order of patches":   func(in *Input) { slices.Reverse(in.Cluster.Spec.Patches) },
		"order of manifests": func(in *Input) { slices.Reverse(in.Cluster.Spec.Kubernetes.Manifests) },
		"order of objects":   func(in *Input) { slices.Reverse(in.Cluster.Spec.Kubernetes.Manifests[0].Inline) },
		"empty to unset":     func(in *Input) { in.ControlPlanes[0].Spec.KernelArgs = nil },
		"unset to empty":     func(in *Input) { in.Workers[1].Spec.SystemExtensions = []string{} },
		"another owner":      func(in *Input) { in.Cluster.UID = "uid-2" },
		"number": func(in *Input) {
			block := freeForm(t, `{"cluster":{"allowSchedulingOnControlPlanes":1.0}}`)
			in.ControlPlanes[0].Spec.Patches[0].Inline = &block
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := loadInput(t, "full")
			change(&in)

			if got := string(render(t, in, nil)); got == base {
				t.Error("the text is the same")
			}
		})
	}
}

func TestRenderLeavesTheObjectsAlone(t *testing.T) {
	in, want := loadInput(t, "full"), loadInput(t, "full")
	render(t, in, nil)

	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("objects after rendering (-want +got):\n%s", diff)
	}
}

// fiftyMachines is a cluster with 3 control-plane machines and 47 workers in three sets, each machine with an
// object and two patches.
func fiftyMachines(t testing.TB) Input {
	t.Helper()

	id := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	in := Input{Cluster: loadInput(t, "full").Cluster}
	in.Cluster.Spec.KernelArgs = nil
	in.ControlPlanes = []v1alpha1.OmniControlPlane{controlPlane("cp", id(0), id(1), id(2))}
	in.Workers = []v1alpha1.OmniWorkers{workers("a", ""), workers("b", ""), workers("c", "")}

	for i := 3; i < 50; i++ {
		set := &in.Workers[i%3].Spec
		set.Machines = append(set.Machines, id(i))
	}

	for i := range 50 {
		object := machine(id(i), "")
		object.Spec.Install = &v1alpha1.MachineInstall{Disk: "/dev/sda"}

		network := freeForm(t, fmt.Sprintf(
			`{"machine":{"network":{"hostname":"node-%d","interfaces":[{"interface":"eth0","addresses":["10.0.0.%d/24"],"mtu":9000}]}}}`, i, i))
		labels := freeForm(t, fmt.Sprintf(`{"machine":{"nodeLabels":{"rack":"%d","slot":"%d"}}}`, i/10, i%10))
		object.Spec.Patches = []v1alpha1.Patch{{Name: "network", Inline: &network}, {Name: "labels", Inline: &labels}}
		in.Machines = append(in.Machines, object)
	}

	for i := range in.ControlPlanes {
		in.ControlPlanes[i].Spec.ClusterRef.Name = in.Cluster.Name
	}

	for i := range in.Workers {
		in.Workers[i].Spec.ClusterRef.Name = in.Cluster.Name
	}

	for i := range in.Machines {
		in.Machines[i].Spec.ClusterRef.Name = in.Cluster.Name
	}

	return in
}

func TestFiftyMachinesAreAccepted(t *testing.T) {
	if got := len(translate(t, render(t, fiftyMachines(t), nil))); got < 200 {
		t.Errorf("Omni makes %d resources of it, want more than 200", got)
	}
}

func BenchmarkRenderFiftyMachines(b *testing.B) {
	in := fiftyMachines(b)

	b.ReportAllocs()

	for b.Loop() {
		render(b, in, nil)
	}
}
