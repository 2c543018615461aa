package observe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

const exportTemplate = `kind: Cluster
name: demo
kubernetes:
  version: v1.35.1
  manifests:
  - name: zeta
    mode: full
    inline: "kind: Namespace\r\napiVersion: v1\r\nmetadata: {name: a}"
  healthchecks:
  - name: nodes
    interval: 45s
    job: "kind: Job\n"
talos: {version: v1.13.3}
features: {backupConfiguration: {interval: 1h}}
patches:
- name: text
  inline: "\n# why\r\nmachine: {sysctls: {a: b}}"
---
kind: ControlPlane
machines: [%s]
---
kind: Workers
machines: [%s]
updateStrategy: {type: Unset}
deleteStrategy: {type: Rolling}
---
kind: Machine
name: %[2]s
kernelArgs: [quiet]
install: {disk: /dev/vda}
`

// exporting returns a simulator with the cluster demo, and the IDs of its machines: of the control plane, of the
// workers, and a spare one.
func exporting(t *testing.T) (state.State, []string) {
	t.Helper()

	return exportingFrom(t, omnisim.Options{Phase: 20 * time.Millisecond})
}

// exportingFrom is exporting with an Omni of its own kind.
func exportingFrom(t *testing.T, options omnisim.Options) (state.State, []string) {
	t.Helper()

	sim, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	machines, err := sim.AddMachines(3)
	if err != nil {
		t.Fatal(err)
	}

	if err := omnisim.SyncTemplate(t.Context(), sim.State(), []byte(fmt.Sprintf(exportTemplate, machines[0], machines[1]))); err != nil {
		t.Fatal(err)
	}

	return sim.State(), machines
}

// inexpressibleIn exports demo and returns the lines of plan.Inexpressible.
func inexpressibleIn(t *testing.T, st state.State) []string {
	t.Helper()

	exported, err := Export(t.Context(), st, "demo", false)
	if err != nil {
		t.Fatal(err)
	}

	inexpressible, err := plan.Inexpressible(t.Context(), st, exported.Template, false)
	if err != nil {
		t.Fatal(err)
	}

	var lines []string
	for _, change := range inexpressible {
		lines = append(lines, change.String())
	}

	slices.Sort(lines)

	return lines
}

func TestExportKeepsWhatTheLibraryLoses(t *testing.T) {
	st, machines := exporting(t)

	exported, err := Export(t.Context(), st, "demo", false)
	if err != nil {
		t.Fatal(err)
	}

	text := string(exported.Template)
	for _, want := range []string{
		`"\n# why\r\nmachine: {sysctls: {a: b}}"`, `"kind: Namespace\r\napiVersion: v1\r\nmetadata: {name: a}"`, `"kind: Job\n"`,
		`"name": "workers"`, `"kernelArgs":`, `- "quiet"`, "disk: /dev/vda",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}

	if !exported.Live.Exists || exported.Live.Locked || len(exported.Unmanaged) > 0 {
		t.Errorf("%+v", exported)
	}

	if inexpressible := inexpressibleIn(t, st); inexpressible != nil {
		t.Errorf("inexpressible %v", inexpressible)
	}

	// Backups that are disabled but keep their interval must not come back enabled.
	update(t, st, omnires.NewCluster("demo"), func(cluster *omnires.Cluster) { cluster.TypedSpec().Value.BackupConfiguration.Enabled = false })

	// Arguments that a user set stay the user's: a template that contains them would take them over.
	args := omnires.NewKernelArgs(machines[0])
	args.TypedSpec().Value.Args = []string{"debug"}

	if err := st.Create(t.Context(), args); err != nil {
		t.Fatal(err)
	}

	patches, err := safe.StateListAll[*omnires.ConfigPatch](t.Context(), st)
	if err != nil || patches.Len() == 0 {
		t.Fatal(patches, err)
	}

	disabled := patches.Get(0).Metadata().ID()
	update(t, st, omnires.NewConfigPatch(disabled), func(patch *omnires.ConfigPatch) { patch.Metadata().Labels().Set(omni.LabelDisabled, "") })

	if exported, err = Export(t.Context(), st, "demo", false); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{disabled}, exported.Disabled); diff != "" {
		t.Errorf("disabled (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff([]string{machines[0]}, exported.Unmanaged); diff != "" || strings.Contains(string(exported.Template), "debug") {
		t.Errorf("unmanaged (-want +got):\n%s\n%s", diff, exported.Template)
	}
}

// TestExportUnknownTalosKinds: Omni may have patches of kinds of Talos that our Talos library does not know.
func TestExportUnknownTalosKinds(t *testing.T) {
	st, machines := exportingFrom(t, omnisim.Options{Phase: 20 * time.Millisecond, NewerTalos: true})
	contents := map[string]string{
		"alone":  "apiVersion: v1alpha1 # as it is\nkind: NoSuchConfig\n",
		"beside": "machine: {sysctls: {a: b}}\n---\napiVersion: v1alpha1\nkind: NoSuchConfig\nname:   x\n",
	}

	for id, content := range contents {
		patch := omnires.NewConfigPatch(id)
		patch.Metadata().Labels().Set(omnires.LabelCluster, "demo")
		patch.Metadata().Labels().Set(omnires.LabelClusterMachine, machines[0])
		patch.Metadata().Annotations().Set("name", id)

		if err := patch.TypedSpec().Value.SetUncompressedData([]byte(content)); err != nil {
			t.Fatal(err)
		}

		if err := st.Create(t.Context(), patch); err != nil {
			t.Fatal(err)
		}
	}

	exported, err := Export(t.Context(), st, "demo", false)
	if err != nil {
		t.Fatal(err)
	}

	for id, content := range contents {
		if quoted := strconv.Quote(content); !strings.Contains(string(exported.Template), quoted) {
			t.Errorf("%s: no %s in\n%s", id, quoted, exported.Template)
		}
	}

	if inexpressible := inexpressibleIn(t, st); inexpressible != nil {
		t.Errorf("inexpressible %v", inexpressible)
	}
}

// update changes a resource as a user does in Omni's UI.
func update[T resource.Resource](t *testing.T, st state.State, item T, change func(T)) {
	t.Helper()

	if _, err := st.UpdateWithConflicts(t.Context(), item.Metadata(), func(found resource.Resource) error {
		change(found.(T)) // it has the type of its metadata

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestExportGaps checks that settings that no template can express show up as changes; the mark alone is no change.
func TestExportGaps(t *testing.T) {
	create := func(t *testing.T, st state.State, item resource.Resource) {
		t.Helper()

		item.Metadata().Labels().Set(omnires.LabelCluster, "demo")

		if err := st.Create(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}

	for name, test := range map[string]struct {
		change func(t *testing.T, st state.State)
		want   []string
	}{
		"another's mark": {change: func(t *testing.T, st state.State) {
			t.Helper()
			update(t, st, omnires.NewCluster("demo"), func(cluster *omnires.Cluster) { cluster.Metadata().Annotations().Set(v1alpha1.MarkOwnerUID, "uid-2") })
		}},
		"a label of the cluster": {change: func(t *testing.T, st state.State) {
			t.Helper()
			update(t, st, omnires.NewCluster("demo"), func(cluster *omnires.Cluster) { cluster.Metadata().Labels().Set("by", "hand") })
		}},
		"an update strategy of the control plane": {
			change: func(t *testing.T, st state.State) {
				t.Helper()
				update(t, st, omnires.NewMachineSet("demo-control-planes"), func(set *omnires.MachineSet) {
					set.TypedSpec().Value.UpdateStrategy = specs.MachineSetSpec_Unset
				})
			},
			want: []string{`update MachineSet "demo-control-planes"`},
		},
		"manifests with an ID of their own": {
			change: func(t *testing.T, st state.State) {
				t.Helper()

				group := omnires.NewKubernetesManifestGroup("mine")
				group.Metadata().Annotations().Set(omnires.KubernetesManifestName, "mine")
				group.TypedSpec().Value.Mode = specs.KubernetesManifestGroupSpec_FULL

				if err := group.TypedSpec().Value.SetUncompressedData([]byte("kind: Namespace\n")); err != nil {
					t.Fatal(err)
				}

				create(t, st, group)
			},
			want: []string{`create KubernetesManifestGroup "201-cluster-demo-mine"`, `destroy KubernetesManifestGroup "mine"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, _ := exporting(t)
			test.change(t, st)

			if diff := cmp.Diff(test.want, inexpressibleIn(t, st)); diff != "" {
				t.Errorf("inexpressible (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExportRefuses(t *testing.T) {
	st, _ := exporting(t)

	if _, err := Export(t.Context(), st, "other", false); !errors.Is(err, omni.ErrNoCluster) || omni.Message(err) != "the cluster was not found in Omni" {
		t.Errorf("no cluster: %q", omni.Message(err))
	}

	nameless := omnires.NewKubernetesManifestGroup("nameless")
	nameless.Metadata().Labels().Set(omnires.LabelCluster, "demo")
	nameless.TypedSpec().Value.Mode = specs.KubernetesManifestGroupSpec_FULL

	if err := st.Create(t.Context(), nameless); err != nil {
		t.Fatal(err)
	}

	_, err := Export(t.Context(), st, "demo", false)
	if !errors.Is(err, omni.ErrNotExportable) || !strings.Contains(err.Error(), `manifest "nameless" has no name annotation`) {
		t.Errorf("manifests without a name: %v", err)
	}
}

// TestExportErrors checks that Omni's errors keep their class, and that content that the decoder quotes is cut off.
func TestExportErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want omni.Class
		text string
	}{
		"denied": {status.Error(codes.PermissionDenied, "only Reader is allowed"), omni.ClassDenied, "only Reader is allowed"},
		"down":   {status.Error(codes.Unavailable, "connection refused"), omni.ClassUnreachable, "connection refused"},
		"library": {
			errors.New("error validating models: unknown keys found during decoding:\ncanary: 1"), omni.ClassRefused,
			"the Omni client cannot write the cluster as a template: error validating models: a patch that the Omni client does not take",
		},
		"type": {errors.New("patch: cannot unmarshal !!str `canary` into int"), omni.ClassRefused, "its content is not shown"},
	} {
		got := exportError(test.err)
		if omni.Classify(got) != test.want || !strings.Contains(got.Error(), test.text) || strings.Contains(got.Error(), "canary") {
			t.Errorf("%s: %v is %q", name, got, omni.Classify(got))
		}
	}
}

func TestListClusters(t *testing.T) {
	fake := omnitest.NewFakeOmni()

	for _, name := range []string{"b", "going", "a"} {
		if err := fake.Create(t.Context(), omnires.NewCluster(name)); err != nil {
			t.Fatal(err)
		}
	}

	going := omnires.NewCluster("going").Metadata()
	if err := fake.AddFinalizer(t.Context(), going, "held"); err != nil {
		t.Fatal(err)
	}

	if _, err := fake.Teardown(t.Context(), going); err != nil {
		t.Fatal(err)
	}

	names, err := ListClusters(t.Context(), fake)
	if diff := cmp.Diff([]string{"a", "b"}, names); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Features that the library's export does not have are exported if they are on, and the export changes nothing.
func TestExportHasFeatures(t *testing.T) {
	st, _ := exporting(t)

	omnitest.MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) {
		c.TypedSpec().Value.Features.EnableNodeAuditSkip = true
		c.Metadata().Labels().Set("by-hand", "")
	})

	exported, err := Export(t.Context(), st, "demo", false)
	if err != nil {
		t.Fatal(err)
	}

	text := string(exported.Template)
	if !strings.Contains(text, `"enableNodeAuditSkip": true`) || strings.Contains(text, "disablePublicDiscoveryService") {
		t.Errorf("the template is\n%s", text)
	}

	if got := inexpressibleIn(t, st); len(got) > 0 {
		t.Errorf("it changes %q", got)
	}
}
