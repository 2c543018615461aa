package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

const (
	diskOfMachine2 = "install: {disk: /dev/sda}\n"
	byTransport    = "install: {diskSelector: disk.transport == 'nvme'}\n"
)

// withDisk is a template in which machine 2 has a document.
func withDisk(settings string) string {
	return omnitest.FullTemplate + machine(omnitest.Machine2, settings)
}

// withoutMachine2 takes machine 2 and its document out of a template.
func withoutMachine2(document string) string {
	before, _, _ := strings.Cut(document, "---\nkind: Machine\n")

	return strings.Replace(before, "- "+omnitest.Machine2+"\n", "", 1)
}

// chosenDisk is a choice of a disk, by a template or by somebody else.
func chosenDisk(disk string, byTemplate bool) *omni.MachineInstallDiskConfig {
	config := omni.NewMachineInstallDiskConfig(omnitest.Machine2)
	config.TypedSpec().Disk = disk

	if byTemplate {
		config.Metadata().Annotations().Set(omnires.ResourceManagedByClusterTemplates, "")
	}

	return config
}

// mustSyncDisks is mustSync for an Omni with MachineInstallDiskConfigs.
func mustSyncDisks(t *testing.T, st state.State, document string) {
	t.Helper()

	if _, err := Apply(t.Context(), st, mustPlan(t, st, document, Options{InstallDisks: true}), ApplyOptions{Consent: EveryChange}); err != nil {
		t.Fatal(err)
	}
}

// wantDisk checks the one choice that there is; nil if there must be none.
func wantDisk(t *testing.T, st state.State, want *omni.MachineInstallDiskConfig) {
	t.Helper()

	found, err := st.Get(t.Context(), omni.NewMachineInstallDiskConfig(omnitest.Machine2).Metadata())

	switch config, _ := found.(*omni.MachineInstallDiskConfig); {
	case want == nil && state.IsNotFoundError(err):
	case err != nil || want == nil:
		t.Errorf("it is %v: %v", found, err)
	case *config.TypedSpec() != *want.TypedSpec() || !config.Metadata().Annotations().Equal(*want.Metadata().Annotations()) ||
		!config.Metadata().Labels().Empty():
		t.Errorf("it is %v %v %v, not %v %v", config.TypedSpec(), config.Metadata().Annotations().Raw(), config.Metadata().Labels().Raw(),
			want.TypedSpec(), want.Metadata().Annotations().Raw())
	}
}

// TestMigratedInstallDisk is an Omni that was upgraded to 1.11 under a cluster: it made the choice of the patch.
func TestMigratedInstallDisk(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, withDisk(diskOfMachine2))

	omnitest.MustDestroy(t, st, omnires.NewConfigPatch("000-cm-"+omnitest.Machine2+"-install-disk"))
	omnitest.MustCreate(t, st, chosenDisk("/dev/sda", true))

	for _, options := range []Options{{InstallDisks: true}, {InstallDisks: true, EveryDestroyIsDestructive: true}, {InstallDisks: true, Rollout: true}} {
		if plan := mustPlan(t, st, withDisk(diskOfMachine2), options); !plan.Empty() {
			t.Errorf("%+v: %v %v", options, lines(plan), plan.WaitingForOmni)
		}
	}
}

// An empty plan counts as long as Omni is as old.
func TestEmptyPlanOfAnotherOmni(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate+machine(omnitest.Machine2, "labels: {a: b}\n"))
	omnitest.MustCreate(t, st, chosenDisk("/dev/sda", true))

	template := mustLoad(t, omnitest.FullTemplate+machine(omnitest.Machine2, "labels: {a: b}\n"))

	for _, test := range []struct {
		options Options
		want    []string
	}{
		{Options{}, []string{}},
		{Options{InstallDisks: true}, []string{`destroy MachineInstallDiskConfig "` + omnitest.Machine2 + `"`}},
		{Options{}, []string{}},
	} {
		plan, err := Sync(t.Context(), st, template, test.options)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(test.want, lines(plan)); diff != "" {
			t.Errorf("%+v: %s", test.options, diff)
		}
	}
}

func TestInstallDisk(t *testing.T) {
	const name = `MachineInstallDiskConfig "` + omnitest.Machine2 + `"`

	bySelector := chosenDisk("", true)
	bySelector.TypedSpec().DiskSelector = "disk.transport == 'nvme'"

	for title, test := range map[string]struct {
		before    string                         // the template that Omni has
		live      *omni.MachineInstallDiskConfig // what somebody put there since
		after     string
		options   Options
		want      []string
		fields    string // of the first change
		wantAfter *omni.MachineInstallDiskConfig
	}{
		"a choice for a machine that is there": {
			before: omnitest.FullTemplate, after: withDisk(diskOfMachine2),
			want: []string{"MachineConfig: create " + name}, wantAfter: chosenDisk("/dev/sda", true),
		},
		"before the machine that comes with it": {
			before: withoutMachine2(omnitest.FullTemplate), after: withDisk(diskOfMachine2),
			want:      []string{"create " + name, `create MachineSetNode "` + omnitest.Machine2 + `"`},
			wantAfter: chosenDisk("/dev/sda", true),
		},
		"another choice": {
			before: withDisk(diskOfMachine2), after: withDisk(byTransport),
			want: []string{"MachineConfig: update " + name}, fields: "disk, diskSelector", wantAfter: bySelector,
		},
		"the document has none any more": {
			before: withDisk(diskOfMachine2), after: withDisk("labels: {a: b}\n"),
			want: []string{
				`update MachineSetNode "` + omnitest.Machine2 + `"`, "MachineConfig: destroy " + name,
			},
		},
		"the document is gone": {
			before: withDisk(diskOfMachine2), after: omnitest.FullTemplate, want: []string{"MachineConfig: destroy " + name},
		},
		"the machine leaves": {
			before: withDisk(diskOfMachine2), after: withoutMachine2(withDisk(diskOfMachine2)),
			want: []string{
				"update " + name, `MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine2 + `"`,
			},
			wantAfter: chosenDisk("/dev/sda", false),
		},
		"somebody else's, without an install section": {
			before: omnitest.FullTemplate, live: chosenDisk("/dev/sdb", false), after: withDisk("locked: false\n"),
			want: []string{}, wantAfter: chosenDisk("/dev/sdb", false),
		},
		"somebody else's, and the machine leaves": {
			before: omnitest.FullTemplate, live: chosenDisk("/dev/sdb", false), after: withoutMachine2(omnitest.FullTemplate),
			want: []string{`MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine2 + `"`}, wantAfter: chosenDisk("/dev/sdb", false),
		},
		"somebody else's, and the document says another": {
			before: omnitest.FullTemplate, live: chosenDisk("/dev/sdb", false), after: withDisk(diskOfMachine2),
			want: []string{"MachineConfig: update " + name}, fields: `annotation "omni.sidero.dev/managed-by-cluster-templates", disk`,
			wantAfter: chosenDisk("/dev/sda", true),
		},
		"somebody else's of the same content": {
			before: omnitest.FullTemplate, live: chosenDisk("/dev/sda", false), after: withDisk(diskOfMachine2),
			want: []string{"update " + name}, fields: `annotation "omni.sidero.dev/managed-by-cluster-templates"`,
			wantAfter: chosenDisk("/dev/sda", true),
		},
		"an adoption that takes it away": {
			before: withDisk(diskOfMachine2), after: omnitest.FullTemplate, options: Options{EveryDestroyIsDestructive: true},
			want: []string{"MachineConfig: ! destroy " + name},
		},
	} {
		t.Run(title, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSyncDisks(t, st, test.before)

			if test.live != nil {
				omnitest.MustCreate(t, st, test.live)
			}

			test.options.InstallDisks, test.options.Rollout = true, true
			plan := mustPlan(t, st, test.after, test.options)

			if diff := cmp.Diff(test.want, shownWith(plan)); diff != "" {
				t.Error(diff)
			}

			if test.fields != "" && plan.Changes[0].Fields != test.fields {
				t.Errorf("it changes %s", plan.Changes[0].Fields)
			}

			if _, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); err != nil {
				t.Fatal(err)
			}

			wantDisk(t, st, test.wantAfter)

			if again := mustPlan(t, st, test.after, Options{InstallDisks: true}); !again.Empty() {
				t.Errorf("a second run: %v", lines(again))
			}
		})
	}
}

// TestInstallDiskWithoutConsent checks what is kept until somebody consents, and that the rest of the machine waits with it.
func TestInstallDiskWithoutConsent(t *testing.T) {
	for title, after := range map[string]string{
		"the document is gone": omnitest.FullTemplate,
		"the machine leaves":   withoutMachine2(withDisk(diskOfMachine2)),
	} {
		t.Run(title, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSyncDisks(t, st, withDisk(diskOfMachine2))

			result, err := Apply(t.Context(), st, mustPlan(t, st, after, Options{InstallDisks: true}), ApplyOptions{})
			if err != nil || len(result.Held) == 0 || len(result.Applied) != 0 {
				t.Errorf("held %v, applied %v: %v", result.Held, result.Applied, err)
			}

			wantDisk(t, st, chosenDisk("/dev/sda", true))
		})
	}
}

// TestInstallDiskOfADeletedCluster checks that the choice outlasts the cluster, and belongs to nobody then.
func TestInstallDiskOfADeletedCluster(t *testing.T) {
	for title, byTemplate := range map[string]bool{"of the template": true, "somebody else's": false} {
		t.Run(title, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSyncDisks(t, st, omnitest.FullTemplate)
			omnitest.MustCreate(t, st, chosenDisk("/dev/sda", byTemplate))

			plan, err := Delete(t.Context(), st, "demo", DeleteOptions{InstallDisks: true})
			if err != nil {
				t.Fatal(err)
			}

			if _, err = Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); err != nil {
				t.Fatal(err)
			}

			wantDisk(t, st, chosenDisk("/dev/sda", false))
		})
	}
}

// TestDiskSelectorInAnOldOmni checks that nothing is planned, and that the message says what is needed.
func TestDiskSelectorInAnOldOmni(t *testing.T) {
	plan, err := Sync(t.Context(), omnitest.NewFakeOmni(), mustLoad(t, withDisk(byTransport)), Options{})

	const want = "this Omni is too old for a part of the cluster template: install.diskSelector of machine " + omnitest.Machine2 +
		" needs Omni 1.11 or later: set install.disk instead, or upgrade Omni"
	if plan != nil || !errors.Is(err, omni.ErrUnserved) || omni.Message(err) != want || omni.Classify(err) != omni.ClassRefused {
		t.Errorf("%v: %s", plan, omni.Message(err))
	}
}

// TestDigestOfAnInstallDisk checks that another choice is another change for a rollout.
func TestDigestOfAnInstallDisk(t *testing.T) {
	digests := map[string]bool{}

	for _, settings := range []string{diskOfMachine2, "install: {disk: /dev/sdb}\n", byTransport} {
		st := omnitest.NewFakeOmni()
		mustSyncDisks(t, st, omnitest.FullTemplate)
		digests[mustPlan(t, st, withDisk(settings), Options{InstallDisks: true, Rollout: true}).Changes[0].Digest] = true
	}

	if len(digests) != 3 || digests[""] {
		t.Error(digests)
	}
}

// TestDiffOfAnInstallDisk checks that a diff shows the choice, which is no secret.
func TestDiffOfAnInstallDisk(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSyncDisks(t, st, withDisk(diskOfMachine2))

	plan := mustPlan(t, st, withDisk(byTransport), Options{InstallDisks: true})
	for _, want := range []string{"-  disk: /dev/sda\n", "+  diskSelector: disk.transport == 'nvme'\n"} {
		if text := plan.Diff(plan.Changes); !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
}

// What others write on a choice survives our updates of it.
func TestInstallDiskKeepsWhatOthersSet(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSyncDisks(t, st, withDisk(diskOfMachine2))
	omnitest.MustChange(t, st, chosenDisk("", true), func(config *omni.MachineInstallDiskConfig) {
		config.Metadata().Annotations().Set("example.com/by-hand", "b")
		config.Metadata().Labels().Set("example.com/by-hand", "a")
		config.TypedSpec().Unknown = string(unknownField())
	})

	if plan := mustPlan(t, st, withDisk(diskOfMachine2), Options{InstallDisks: true}); !plan.Empty() {
		t.Error(lines(plan))
	}

	mustSyncDisks(t, st, withDisk(byTransport))

	found, err := st.Get(t.Context(), chosenDisk("", true).Metadata())
	if err != nil {
		t.Fatal(err)
	}

	metadata := found.Metadata()
	_, label := metadata.Labels().Get("example.com/by-hand")

	if _, annotation := metadata.Annotations().Get("example.com/by-hand"); !label || !annotation || metadata.Phase() != resource.PhaseRunning {
		t.Error(metadata)
	}

	if config, ok := found.(*omni.MachineInstallDiskConfig); !ok || config.TypedSpec().Unknown != string(unknownField()) {
		t.Errorf("the field of a release to come is gone: %+v", found.Spec())
	}
}
