package observe

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// An export has the install disk of each machine, whoever chose it, and nothing that its documents would change.
func TestExportOfInstallDisks(t *testing.T) {
	disk := func(machine string, spec omni.MachineInstallDiskConfigSpec, byTemplate bool) func(*testing.T, state.State) {
		return func(t *testing.T, st state.State) {
			t.Helper()

			config := omni.NewMachineInstallDiskConfig(machine)
			*config.TypedSpec() = spec

			if byTemplate {
				config.Metadata().Annotations().Set(omnires.ResourceManagedByClusterTemplates, "")
			}

			omnitest.MustCreate(t, st, config)
		}
	}

	for title, test := range map[string]struct {
		live func(*testing.T, state.State)
		want string
	}{
		"a disk of a template": {disk(omnitest.Machine2, omni.MachineInstallDiskConfigSpec{Disk: "/dev/sda"}, true), `"disk": "/dev/sda"`},
		"a selector":           {disk(omnitest.Machine2, omni.MachineInstallDiskConfigSpec{DiskSelector: "disk.size > 1u"}, true), `"diskSelector": "disk.size > 1u"`},
		"set by hand":          {disk(omnitest.Machine2, omni.MachineInstallDiskConfigSpec{Disk: "/dev/sdb"}, false), `"disk": "/dev/sdb"`},
		"of another cluster":   {disk(omnitest.Machine4, omni.MachineInstallDiskConfigSpec{Disk: "/dev/sdb"}, true), ""},
	} {
		t.Run(title, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			plantest.Sync(t, st, omnitest.FullTemplate)
			test.live(t, st)

			exported, err := Export(t.Context(), st, "demo", true)
			if err != nil {
				t.Fatal(err)
			}

			text := string(exported.Template)
			if has := strings.Contains(text, "install"); has != (test.want != "") || !strings.Contains(text, test.want) {
				t.Errorf("the export is\n%s", text)
			}

			if left, err := plan.Inexpressible(t.Context(), st, exported.Template, true); err != nil || len(left) > 0 {
				t.Errorf("its documents would change %v: %v", left, err)
			}
		})
	}
}
