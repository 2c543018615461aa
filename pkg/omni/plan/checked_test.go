package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// mustCheck syncs a state and returns what is known of the template then.
func mustCheck(t *testing.T, st state.State, document string) *Checked {
	t.Helper()
	mustSync(t, st, document)

	template := mustLoad(t, document)
	if plan, err := Sync(t.Context(), st, template, Options{}); err != nil || !plan.Empty() {
		t.Fatal(plan, err)
	}

	return template.Checked()
}

// loadKnown loads a template of which something is known.
func loadKnown(t *testing.T, known *Checked, document string) *Template {
	t.Helper()

	template, err := known.Load([]byte(document))
	if err != nil {
		t.Fatal(err)
	}

	return template
}

// The template of a cluster without changes is neither read nor compared again, whatever happens to the rest of Omni.
func TestUnchangedTemplateIsNotReadAgain(t *testing.T) {
	st := omnitest.NewFakeOmni()
	known := mustCheck(t, st, omnitest.FullTemplate)

	omnitest.MustCreate(t, st, omnires.NewCluster("other"), omnires.NewMachineSet("other-workers"), omnires.NewClusterStatus("demo"))

	for range 2 {
		template := loadKnown(t, known, omnitest.FullTemplate)

		plan, err := Sync(t.Context(), st, template, Options{})
		if err != nil || plan != known.emptyPlan.plan || template.parsed != nil {
			t.Fatal(plan, err, template.parsed)
		}

		known = template.Checked()
	}

	// Another text is read, and has to be right.
	if template := loadKnown(t, known, omnitest.FullTemplate+"\n# as above\n"); template.parsed == nil {
		t.Error("another text was not read")
	}

	if _, err := known.Load([]byte("kind: Something\n")); err == nil {
		t.Error("a template that is wrong was accepted")
	}
}

// Whatever happens to Omni, what is known of a template leads to the very plan that is made without it.
func TestSettledTemplateKnowsEveryChange(t *testing.T) {
	foreigntest.Sequential(t)

	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			st := omnitest.NewFakeOmni()
			known := mustCheck(t, st, omnitest.FullTemplate)

			for range 12 {
				what := somethingHappens(t, st, random)
				template := loadKnown(t, known, omnitest.FullTemplate)
				got, gotErr := Sync(t.Context(), st, template, Options{})
				want, wantErr := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{})

				if diff := cmp.Diff(fmt.Sprint(wantErr), fmt.Sprint(gotErr)); diff != "" {
					t.Fatalf("after %s: %s", what, diff)
				}

				known = template.Checked()

				if wantErr != nil {
					continue
				}

				if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
					t.Fatalf("after %s: %s", what, diff)
				}

				if diff := cmp.Diff(want.Live, got.Live); diff != "" {
					t.Fatalf("after %s: %s", what, diff)
				}
			}
		})
	}
}

// somethingHappens changes, destroys or creates a resource that a plan depends on, or syncs the template.
func somethingHappens(t *testing.T, st state.State, random *rand.Rand) string {
	t.Helper()

	var all []resource.Resource

	for _, kind := range []resource.Type{
		omnires.ClusterType, omnires.MachineSetType, omnires.MachineSetNodeType, omnires.ConfigPatchType, omnires.ExtensionsConfigurationType,
		omnires.KernelArgsType, TypeManifestGroup, omnires.KubernetesHealthCheckType,
	} {
		list, err := st.List(t.Context(), resource.NewMetadata("default", kind, "", resource.VersionUndefined))
		if err != nil {
			t.Fatal(err)
		}

		all = append(all, list.Items...)
	}

	action := random.IntN(5)
	if len(all) == 0 {
		action = 4
	}

	if action == 4 {
		if plan, err := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{}); err == nil {
			_, err = Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})

			return fmt.Sprint("a sync: ", err)
		}

		return "no sync"
	}

	item := all[random.IntN(len(all))]
	name := resource.String(item)

	switch action {
	case 0:
		omnitest.MustDestroy(t, st, item)

		return name + " is destroyed"
	case 1:
		omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewConfigPatch(fmt.Sprint("by-hand-", random.IntN(1000))), "demo"))

		return "a patch by hand"
	case 2:
		omnitest.MustChange(t, st, item, func(r resource.Resource) { r.Metadata().Labels().Set(omnires.LabelCluster, "other") })

		return name + " is taken by another cluster"
	default:
		omnitest.MustChange(t, st, item, func(r resource.Resource) { r.Metadata().Annotations().Set("note", fmt.Sprint(random.IntN(1000))) })

		return name + " has a note"
	}
}
