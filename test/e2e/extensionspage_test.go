package e2e

import (
	"regexp"
	"slices"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The sets of docs/how-to/extensions.md are made, with the extensions in Omni that the page names.
func TestExtensionsPage(t *testing.T) {
	t.Parallel()

	catalogue := omnisim.DefaultCatalogue()
	catalogue.Extensions = append(catalogue.Extensions,
		"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nvidia-container-toolkit-production")

	f := fleetWith(newSpace(t), omnisim.Options{Phase: phase, Catalogue: &catalogue})
	f.cluster("cluster-01")

	machine := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

	for i, example := range pageBlocks(t, "docs/how-to/extensions.md", "yaml") {
		f.apply(machine.ReplaceAllString(example.text, f.machines[1+i]))
	}

	for set, first := range map[string]string{"storage": "siderolabs/iscsi-tools", "gpu": "siderolabs/nvidia-open-gpu-kernel-modules-production"} {
		f.waitCondition("ow", set, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

		if got := f.extensions("cluster-01-" + set); len(got) != 2 || !slices.Contains(got, first) {
			t.Errorf("%s: Omni has the extensions %v", set, got)
		}
	}
}

// extensions are those that Omni has for a machine set.
func (f *fleet) extensions(set string) []string {
	f.t.Helper()

	list, err := safe.StateListAll[*omni.ExtensionsConfiguration](f.t.Context(), f.omni.State())
	if err != nil {
		f.t.Fatal(err)
	}

	for configuration := range list.All() {
		if id, _ := configuration.Metadata().Labels().Get(omni.LabelMachineSet); id == set {
			return configuration.TypedSpec().Value.GetExtensions()
		}
	}

	return nil
}
