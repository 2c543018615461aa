package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// everyKind is a template with a resource of each type that a template may have.
const everyKind = `kind: Cluster
name: demo
labels: {team: a}
annotations:
  omni.texashpc.com/owner-uid: uid-1
kubernetes:
  version: v1.35.0
  manifests:
  - {name: m, mode: full, inline: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]}
  healthchecks:
  - {name: h, interval: 1m, job: {apiVersion: batch/v1, kind: Job, metadata: {name: x}}}
talos:
  version: v1.13.2
features:
  backupConfiguration: {interval: 1h}
systemExtensions:
- siderolabs/hello
patches:
- name: p
  labels: {team: a}
  annotations: {note: a}
  inline: {machine: {network: {hostname: x}}}
---
kind: ControlPlane
machines:
- 11111111-1111-4111-8111-111111111111
---
kind: Workers
name: workers
labels: {team: a}
updateStrategy: {rolling: {maxParallelism: 1}}
machines:
- 22222222-2222-4222-8222-222222222222
---
kind: Machine
name: 22222222-2222-4222-8222-222222222222
labels: {team: a}
kernelArgs:
- quiet
`

// everyType are the resources of everyKind, of one machine and one set.
func everyType() []resource.Resource {
	return []resource.Resource{
		omnires.NewCluster("demo"), omnires.NewMachineSet("demo-workers"), omnires.NewConfigPatch("200-cluster-demo-p"),
		omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("demo", "workers")), omnires.NewKernelArgs(omnitest.Machine2),
		omnires.NewExtensionsConfiguration("schematic-demo"), omnires.NewKubernetesManifestGroup("200-cluster-demo-m"),
		omnires.NewKubernetesHealthCheck("cluster-demo-h"),
	}
}

// unknownField is a field of a release to come.
func unknownField() []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "of a release to come")
}

// setByOthers changes every resource of everyKind as other people, Omni's web interface and newer releases of Omni do.
func setByOthers(t *testing.T, st state.State) {
	t.Helper()

	for _, item := range everyType() {
		omnitest.MustChange(t, st, item, func(found resource.Resource) {
			found.Metadata().Labels().Set("example.com/by-hand", "a")
			found.Metadata().Annotations().Set("example.com/by-hand", "b")
			found.Metadata().Annotations().Set("omni.sidero.dev/of-a-release-to-come", "")

			if message, isMessage := protoOf(found); isMessage {
				message.ProtoReflect().SetUnknown(unknownField())
			}
		})
	}

	omnitest.MustChange(t, st, omnires.NewConfigPatch("200-cluster-demo-p"), func(p *omnires.ConfigPatch) {
		p.Metadata().Labels().Set(omni.LabelDisabled, "")
	})
	omnitest.MustChange(t, st, omnires.NewMachineSet("demo-workers"), func(s *omnires.MachineSet) {
		s.TypedSpec().Value.UpdateStrategyConfig.ProtoReflect().SetUnknown(unknownField())
	})
	omnitest.MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) {
		c.TypedSpec().Value.Features.EnableNodeAuditSkip = true
		omni.SetDisablePublicDiscovery(c.TypedSpec().Value.Features, true)
	})
}

// wantByOthers checks that everything of setByOthers is still there.
func wantByOthers(t *testing.T, st state.State) {
	t.Helper()

	for _, item := range everyType() {
		found, err := st.Get(t.Context(), item.Metadata())
		if err != nil {
			t.Error(err)

			continue
		}

		message, isMessage := protoOf(found)
		_, label := found.Metadata().Labels().Get("example.com/by-hand")
		_, annotation := found.Metadata().Annotations().Get("example.com/by-hand")
		_, newer := found.Metadata().Annotations().Get("omni.sidero.dev/of-a-release-to-come")

		if !label || !annotation || !newer || isMessage && string(message.ProtoReflect().GetUnknown()) != string(unknownField()) {
			t.Errorf("%s: label %v, annotations %v and %v, %v", resource.String(item), label, annotation, newer, message)
		}

		switch typed := found.(type) {
		case *omnires.Cluster:
			features := typed.TypedSpec().Value.GetFeatures()
			if !features.GetEnableNodeAuditSkip() || !omni.DisablesPublicDiscovery(features) {
				t.Errorf("features: %v", features)
			}
		case *omnires.ConfigPatch:
			if _, disabled := typed.Metadata().Labels().Get(omni.LabelDisabled); !disabled {
				t.Error("the patch is enabled again")
			}
		case *omnires.MachineSet:
			if config := typed.TypedSpec().Value.GetUpdateStrategyConfig(); config != nil && len(config.ProtoReflect().GetUnknown()) == 0 {
				t.Error("the unknown field inside of a field is gone")
			}
		}
	}
}

func TestWhatOthersSetSurvives(t *testing.T) {
	for name, edit := range map[string]*strings.Replacer{
		"nothing":   strings.NewReplacer(),
		"a scale":   strings.NewReplacer("- "+omnitest.Machine2+"\n---", "- "+omnitest.Machine2+"\n- "+omnitest.Machine3+"\n---"),
		"a version": strings.NewReplacer("v1.13.2", "v1.13.3"),
		"everything": strings.NewReplacer("v1.35.0", "v1.35.1", "hostname: x", "hostname: y", "- quiet", "- loud", "interval: 1m", "interval: 2m",
			"team: a", "team: b", "siderolabs/hello", "siderolabs/other", "maxParallelism: 1", "maxParallelism: 2", "{name: x}}]}", "{name: x, labels: {a: b}}}]}"),
	} {
		for how, options := range map[string]Options{"sync": {}, "adoption": {EveryDestroyIsDestructive: true}, "rollout": {Rollout: true}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				st := omnitest.NewFakeOmni()
				mustSync(t, st, everyKind)

				want := lines(mustPlan(t, st, edit.Replace(everyKind), options))

				setByOthers(t, st)

				plan := mustPlan(t, st, edit.Replace(everyKind), options)
				if diff := cmp.Diff(want, lines(plan)); diff != "" {
					t.Errorf("another plan: %s", diff)
				}

				if _, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); err != nil {
					t.Fatal(err)
				}

				wantByOthers(t, st)

				if again := mustPlan(t, st, edit.Replace(everyKind), options); !again.Empty() {
					t.Errorf("a second run: %v", lines(again))
				}
			})
		}
	}
}

// A cluster that somebody else made has nothing of ours. The adoption puts the mark on it, and takes nothing away.
func TestWhatOthersSetSurvivesAnAdoption(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, everyKind)

	for _, item := range everyType() {
		omnitest.MustChange(t, st, item, func(found resource.Resource) {
			for _, key := range found.Metadata().Annotations().Keys() {
				if strings.HasPrefix(key, "omni.texashpc.com/") {
					found.Metadata().Annotations().Delete(key)
				}
			}
		})
	}

	setByOthers(t, st)

	document := strings.NewReplacer("  labels: {team: a}\n", "", "labels: {team: a}\n", "", "features:\n  backupConfiguration: {interval: 1h}\n", "").Replace(everyKind)

	plan := mustPlan(t, st, document, Options{EveryDestroyIsDestructive: true})
	if diff := cmp.Diff([]string{`update Cluster "demo"`}, lines(plan)); diff != "" {
		t.Error(diff)
	}

	if got := plan.Changes[0].Fields; got != `annotation "omni.texashpc.com/owner-uid"` {
		t.Errorf("it changes %q", got)
	}

	mustSync(t, st, document)
	wantByOthers(t, st)

	cluster, err := omni.ReadCluster(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	if team, _ := cluster.Metadata().Labels().Get("team"); team != "a" || !cluster.TypedSpec().Value.GetBackupConfiguration().GetEnabled() {
		t.Errorf("labels %v, backups %v", cluster.Metadata().Labels().Raw(), cluster.TypedSpec().Value.GetBackupConfiguration())
	}
}

// What a template wrote goes with the template that does not have it any more, and nothing else.
func TestWhatWeWroteGoes(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, everyKind)
	setByOthers(t, st)
	mustSync(t, st, strings.ReplaceAll(everyKind, "{team: a}", "{team: a, zone: b, name: n}"))

	without := strings.NewReplacer("  labels: {team: a}\n", "", "labels: {team: a}\n", "", "  annotations: {note: a}\n", "", "features:\n  backupConfiguration: {interval: 1h}\n", "").Replace(everyKind)
	plan := mustPlan(t, st, without, Options{})

	fields := map[string]string{}
	for _, change := range plan.Changes {
		fields[omni.KindOf(change.Type)] = change.Fields
	}

	want := map[string]string{
		"Cluster":        `label "name", label "team", label "zone", backupConfiguration`,
		"ConfigPatch":    `label "name", label "team", label "zone", annotation "note"`,
		"MachineSet":     `label "name", label "team", label "zone"`,
		"MachineSetNode": `label "name", label "team", label "zone"`,
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}

	mustSync(t, st, without)
	wantByOthers(t, st)

	for _, item := range everyType() {
		found, err := st.Get(t.Context(), item.Metadata())
		if err != nil {
			t.Fatal(err)
		}

		for _, key := range append(found.Metadata().Labels().Keys(), found.Metadata().Annotations().Keys()...) {
			if key == "team" || key == "zone" || key == "note" || key == "name" && item.Metadata().Type() == omnires.MachineSetType || key == "omni.texashpc.com/applied" {
				t.Errorf("%s still has %s", resource.String(item), key)
			}
		}
	}

	if again := mustPlan(t, st, without, Options{}); !again.Empty() {
		t.Errorf("a second run: %v", lines(again))
	}
}

// A document may have our record in it, from an export: the plan is empty after it was applied.
func TestOurRecordInADocument(t *testing.T) {
	st := omnitest.NewFakeOmni()
	document := strings.Replace(everyKind, "annotations: {note: a}", "annotations: {omni.texashpc.com/applied: x}", 1)

	for _, text := range []string{everyKind, document, strings.Replace(document, "labels: {team: a}\n  annotations", "annotations", 1)} {
		mustSync(t, st, text)

		if again := mustPlan(t, st, text, Options{}); !again.Empty() {
			t.Errorf("a second run: %v", lines(again))
		}
	}
}

// What others set makes no difference to the identity of a change: a change that waits for its turn stays the same.
func TestDigestIsOfOurs(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, everyKind)

	changed := strings.NewReplacer("hostname: x", "hostname: y", "- quiet", "- loud", "siderolabs/hello", "siderolabs/other", "{name: x}}]}", "{name: x, labels: {a: b}}}]}").Replace(everyKind)
	digests := func() map[string]string {
		found := map[string]string{}
		for _, change := range mustPlan(t, st, changed, Options{Rollout: true}).Changes {
			found[change.String()] = change.Digest
		}

		return found
	}

	before := digests()
	setByOthers(t, st)

	if diff := cmp.Diff(before, digests()); diff != "" || len(before) != 4 {
		t.Errorf("of %d changes: %s", len(before), diff)
	}
}

// A label on which a patch's place depends is ours, whoever set it.
func TestPlaceIsOurs(t *testing.T) {
	const patch = "patches:\n- idOverride: p\n  inline: {machine: {network: {hostname: x}}}\n"

	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate+patch)
	mustSync(t, st, strings.Replace(omnitest.FullTemplate, "talos:", patch+"talos:", 1))

	found, err := st.Get(t.Context(), omnires.NewConfigPatch("p").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if set, has := found.Metadata().Labels().Get(omnires.LabelMachineSet); has {
		t.Errorf("it is still that of %s", set)
	}
}

func TestFeaturesOfATemplate(t *testing.T) {
	with := func(text string) string {
		return strings.Replace(omnitest.FullTemplate, "talos:", "features:\n  enableWorkloadProxy: true\n"+text+"talos:", 1)
	}

	const both = "  enableNodeAuditSkip: true\n  disablePublicDiscoveryService: true\n"

	st := omnitest.NewFakeOmni()

	for _, test := range []struct {
		name, document string
		want           []string
		fields         string
		skip, disable  bool
	}{
		{"created", with(both), nil, "", true, true},
		{"left alone", with(""), nil, "", true, true},
		{"one off", with("  enableNodeAuditSkip: false\n"), []string{`update Cluster "demo"`}, "features.enableNodeAuditSkip", false, true},
		{"the other one off", with("  disablePublicDiscoveryService: false\n"), []string{`update Cluster "demo"`}, "features.disablePublicDiscoveryService", false, false},
		{"off is off", with(strings.ReplaceAll(both, "true", "false")), nil, "", false, false},
		{"on", with(both), []string{`update Cluster "demo"`}, "features.enableNodeAuditSkip, features.disablePublicDiscoveryService", true, true},
		{"with a version", strings.Replace(with(strings.ReplaceAll(both, "true", "false")), "v1.35.0", "v1.35.1", 1), []string{`update Cluster "demo"`},
			"kubernetesVersion, features.enableNodeAuditSkip, features.disablePublicDiscoveryService", false, false},
		{"in one line", strings.Replace(omnitest.FullTemplate, "talos:", "features: {enableNodeAuditSkip: true}\ntalos:", 1), []string{`update Cluster "demo"`},
			"", true, false},
	} {
		if plan := mustPlan(t, st, test.document, Options{}); test.name != "created" {
			if diff := cmp.Diff(test.want, lines(plan), cmp.Transformer("empty", func(l []string) string { return strings.Join(l, "\n") })); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}

			if test.fields != "" && plan.Changes[0].Fields != test.fields {
				t.Errorf("%s: changes %q", test.name, plan.Changes[0].Fields)
			}

			if text := plan.Diff(plan.Changes); strings.Contains(test.fields, "disable") && !strings.Contains(text, "disablePublicDiscoveryService: true") {
				t.Errorf("%s: the diff is\n%s", test.name, text)
			}
		}

		mustSync(t, st, test.document)

		cluster, err := omni.ReadCluster(t.Context(), st, "demo")
		if err != nil {
			t.Fatal(err)
		}

		features := cluster.TypedSpec().Value.GetFeatures()
		if features.GetEnableNodeAuditSkip() != test.skip || omni.DisablesPublicDiscovery(features) != test.disable {
			t.Errorf("%s: %v", test.name, features)
		}

		if again := mustPlan(t, st, test.document, Options{}); !again.Empty() {
			t.Errorf("%s, a second run: %v", test.name, lines(again))
		}
	}
}

// Backups that somebody set up in Omni stay, unless the template says what it wants.
func TestBackupsOfOthers(t *testing.T) {
	backups := func(interval string) string {
		return strings.Replace(omnitest.FullTemplate, "talos:", "features: {backupConfiguration: {interval: "+interval+"}}\ntalos:", 1)
	}

	for name, test := range map[string]struct {
		document string
		on       bool
	}{
		"unset": {omnitest.FullTemplate, true},
		"off":   {backups("0s"), false},
		"ours":  {backups("2h"), true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)
			omnitest.MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) {
				c.TypedSpec().Value.BackupConfiguration = &specs.EtcdBackupConf{Interval: durationpb.New(time.Hour), Enabled: true}
			})
			mustSync(t, st, test.document)

			cluster, err := omni.ReadCluster(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			if on := cluster.TypedSpec().Value.GetBackupConfiguration().GetEnabled(); on != test.on {
				t.Errorf("backups: %v", on)
			}

			if again := mustPlan(t, st, test.document, Options{}); !again.Empty() {
				t.Errorf("a second run: %v", lines(again))
			}
		})
	}
}
