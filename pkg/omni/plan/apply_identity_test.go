package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
)

// The streams of a copy are independent: it may show the new Cluster with the ID of the old one.
func TestApplyNoticesAnotherID(t *testing.T) {
	identity := func(uuid string) *omnires.ClusterUUID {
		made := omnires.NewClusterUUID("demo")
		made.TypedSpec().Value.Uuid = uuid

		return made
	}

	for name, test := range map[string]struct {
		document string // empty: a deletion
		writes   bool
	}{
		"a deletion":          {"", false},
		"a set goes":          {omnitest.ClusterDocument + omnitest.ControlPlaneDocument, false},
		"nothing is to go":    {omnitest.FullTemplate + "---\nkind: Workers\nname: more\n", true},
		"nothing has changed": {omnitest.FullTemplate, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)
			omnitest.MustCreate(t, st, identity("old"))

			plan, err := Delete(t.Context(), st, "demo", DeleteOptions{})
			if test.document != "" {
				plan = mustPlan(t, st, test.document, Options{})
			}

			if err != nil {
				t.Fatal(err)
			}

			omnitest.MustChange(t, st, identity("old"), func(item *omnires.ClusterUUID) { item.TypedSpec().Value.Uuid = "new" })

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if result.Wrote() != test.writes || len(plan.steps) > 0 && !test.writes && !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

// A patch that belongs to another cluster by now, or was made again, is not torn down.
func TestApplyLooksAgainBeforeItDestroysAPatch(t *testing.T) {
	for name, cluster := range map[string]string{"of another cluster": "other", "made again": "demo"} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)

			patch := omnitest.Labelled(omnires.NewConfigPatch("500-mine"), "demo")
			omnitest.MustCreate(t, st, patch)

			plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

			omnitest.MustDestroy(t, st, patch)
			time.Sleep(2 * time.Millisecond)
			omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewConfigPatch("500-mine"), cluster))

			if _, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("error %v", err)
			}

			if found, err := st.Get(t.Context(), patch.Metadata()); err != nil || found.Metadata().Phase() != resource.PhaseRunning {
				t.Errorf("the patch: %v, %v", found, err)
			}
		})
	}
}
