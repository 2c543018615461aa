package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// What Omni's templates let people spell in several ways comes out the same, so that a plan shows no change.
func TestSpellings(t *testing.T) {
	const machine = "26b87860-38b4-400f-af72-bc8d26ab6cd6"

	render := func(id string, size intstr.IntOrString, rolling *v1alpha1.RollingStrategy) string {
		in := loadInput(t, "minimal")
		in.ControlPlanes[0].Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{id}}
		in.Workers = []v1alpha1.OmniWorkers{{Spec: v1alpha1.OmniWorkersSpec{
			ClusterRef:         v1alpha1.LocalObjectReference{Name: in.Cluster.Name},
			WorkerSetName:      "pool",
			MachineSetMachines: v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "large", Size: &size}},
			UpdateStrategy:     &v1alpha1.Strategy{Rolling: rolling},
		}}}
		in.Machines = []v1alpha1.OmniMachine{{Spec: v1alpha1.OmniMachineSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: in.Cluster.Name}, MachineID: id,
		}}}

		documents, err := Assemble(in)
		if err != nil {
			t.Fatal(err)
		}

		text, err := documents.Render(fixtureValue, MarkOf(in.Cluster, Hub{}))
		if err != nil {
			t.Fatal(err)
		}

		return string(text)
	}

	for name, test := range map[string]struct {
		id            string
		size, written intstr.IntOrString
		rolling       *v1alpha1.RollingStrategy
	}{
		"upper case, quoted size":        {strings.ToUpper(machine), intstr.FromString("3"), intstr.FromInt32(3), nil},
		"no hyphens, infinity":           {strings.ReplaceAll(machine, "-", ""), intstr.FromString("infinity"), intstr.FromString("unlimited"), nil},
		"braces, the sign":               {"{" + machine + "}", intstr.FromString("∞"), intstr.FromString("unlimited"), nil},
		"a URN, rolling without a bound": {"urn:uuid:" + machine, intstr.FromInt32(1), intstr.FromInt32(1), &v1alpha1.RollingStrategy{}},
	} {
		t.Run(name, func(t *testing.T) {
			rolling := test.rolling
			if rolling != nil {
				rolling = &v1alpha1.RollingStrategy{MaxParallelism: 1}
			}

			if diff := cmp.Diff(render(machine, test.written, rolling), render(test.id, test.size, test.rolling)); diff != "" {
				t.Errorf("(-as Omni writes it +spelled otherwise):\n%s", diff)
			}
		})
	}
}
