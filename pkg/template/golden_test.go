package template

import (
	"path/filepath"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/golden"
)

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name, input string
		values      ValueFunc
		refusal     string
	}{
		{name: "minimal", input: "minimal"},
		{name: "classes", input: "classes"},
		{name: "full", input: "full"},
		{name: "values", input: "values", values: fixtureValue},
		{name: "reference", input: "values", values: Reference,
			refusal: `failed to validate inline patch "registry-login": config not found`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := render(t, loadInput(t, test.input), test.values)
			golden.Expect(t, filepath.Join("testdata", test.name+".golden.yaml"), string(got))

			if test.refusal == "" {
				translate(t, got)
			} else if err := validate(t, got); err == nil || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("Omni's rules say %v, want %q", err, test.refusal)
			}
		})
	}
}

func TestReferenceShowsNoContent(t *testing.T) {
	text := string(render(t, loadInput(t, "values"), Reference))

	for line := range strings.Lines(secretText) {
		if strings.Contains(text, strings.TrimSpace(line)) {
			t.Errorf("the reference template shows %q of the Secret", line)
		}
	}
}

// A feature that is unset is left out, which leaves Omni's alone; a false is written.
func TestUnsetFeaturesAreLeftOut(t *testing.T) {
	input := loadInput(t, "full")
	if text := string(render(t, input, nil)); strings.Contains(text, "enableNodeAuditSkip") || strings.Contains(text, "disablePublicDiscoveryService") {
		t.Errorf("the template is\n%s", text)
	}

	input.Cluster.Spec.Features.EnableNodeAuditSkip, input.Cluster.Spec.Features.DisablePublicDiscoveryService = new(false), new(true)

	const want = "  diskEncryption: true\n  enableNodeAuditSkip: false\n  disablePublicDiscoveryService: true\n"
	if text := string(render(t, input, nil)); !strings.Contains(text, want) {
		t.Errorf("the template is\n%s", text)
	}
}

// A disk is written as ever, and a selector by the name that Omni's own template has for it.
func TestInstallDisk(t *testing.T) {
	for want, install := range map[string]v1alpha1.MachineInstall{
		"install:\n  disk: /dev/sda\n":                         {Disk: "/dev/sda"},
		"install:\n  diskSelector: disk.transport == 'nvme'\n": {DiskSelector: "disk.transport == 'nvme'"},
	} {
		input := loadInput(t, "full")
		for i := range input.Machines {
			input.Machines[i].Spec.Install = &install
		}

		if text := string(render(t, input, nil)); !strings.Contains(text, want) {
			t.Errorf("the template is\n%s", text)
		}
	}
}
