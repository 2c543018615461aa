package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// A document that was deleted may be the first of a cluster that is deleted: what it said of a machine that stays is not taken
// from it before somebody consents.
func TestSettingsOfAMachineWhoseDocumentIsGone(t *testing.T) {
	const (
		control  = "11111111-1111-4111-8111-111111111111"
		worker   = "33333333-3333-4333-8333-333333333333"
		settings = "install: {disk: /dev/sdb}\nsystemExtensions: [siderolabs/other]\nkernelArgs: [debug]\npatches:\n- {name: net, inline: {machine: {env: {A: \"1\"}}}}\n"
	)

	base := strings.Replace(runningTemplate, "systemExtensions: [siderolabs/hello]", "systemExtensions: [siderolabs/hello]\nkernelArgs: [quiet]", 1)
	ofControl, ofWorker := machine(control, settings), machine(worker, settings)

	lost := func(id string) []string {
		return []string{
			`update KernelArgs "` + id + `"`, `destroy ExtensionsConfiguration "schematic-` + id + `"`,
			`destroy ConfigPatch "000-cm-` + id + `-install-disk"`, `destroy ConfigPatch "400-cm-` + id + `-net"`,
		}
	}

	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"of the control plane":                 {base + ofControl, base, lost(control)},
		"of a worker":                          {base + ofWorker, base, lost(worker)},
		"the document stays, without settings": {base + ofControl, base + machine(control), nil},
		"only a patch goes":                    {base + ofControl, base + machine(control, strings.Split(settings, "patches")[0]), nil},
		"the machine goes, too": {
			base + ofWorker, strings.Replace(base, ", "+worker, "", 1), nil,
		},
		"nothing but labels":                   {base + machine(control, "labels: {a: b}\n"), base, nil},
		"new kernel arguments of all machines": {base, strings.Replace(base, "kernelArgs: [quiet]", "kernelArgs: [quiet, debug]", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.before)

			plan := mustPlan(t, st, test.after, Options{})

			var gone []string

			for _, change := range plan.Changes {
				if change.DocumentGone {
					gone = append(gone, change.String())
				}

				if change.DocumentGone && change.Destructive {
					t.Errorf("%s is destructive", change)
				}
			}

			if diff := cmp.Diff(test.want, gone); diff != "" {
				t.Error(diff)
			}

			if test.want != nil && plan.Hash != "" {
				t.Errorf("the hash is %q: nothing of it is to be approved", plan.Hash)
			}

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: func(change Change) bool { return change.Destructive }})
			if err != nil {
				t.Fatal(err)
			}

			var held []string
			for _, change := range result.Held {
				held = append(held, change.String())
			}

			if diff := cmp.Diff(test.want, held); diff != "" {
				t.Errorf("held: %s", diff)
			}

			if _, err := Apply(t.Context(), st, mustPlan(t, st, test.after, Options{}), ApplyOptions{Consent: EveryChange}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
