package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// The streams of a copy are independent: it may show the new Cluster with the ID of the old one.
func TestApplyNoticesAnotherID(t *testing.T) {
	identity := func(uuid string) *omnires.ClusterUUID {
		made := omnires.NewClusterUUID("demo")
		made.TypedSpec().Value.Uuid = uuid

		return made
	}

	all := omnitest.FullTemplate + classWorkers("sized", "5") + machine(omnitest.Machine2, netPatch)

	for name, test := range map[string]struct {
		document string // empty: a deletion
		writes   bool
	}{
		"a deletion":          {"", false},
		"a set goes":          {omnitest.ClusterDocument + omnitest.ControlPlaneDocument, false},
		"a set gets smaller":  {omnitest.FullTemplate + classWorkers("sized", "3") + machine(omnitest.Machine2, netPatch), false},
		"a patch goes":        {omnitest.FullTemplate + classWorkers("sized", "5") + machine(omnitest.Machine2), false},
		"nothing is to go":    {all + "---\nkind: Workers\nname: more\n", true},
		"nothing has changed": {all, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, all)
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
			if (len(result.Taken()) > 0) != test.writes || len(plan.steps) > 0 && !test.writes && !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

// A patch that belongs to another cluster by now, or was made again, is not torn down.
func TestApplyLooksAgainBeforeItDestroysAPatch(t *testing.T) {
	patch := omnitest.Labelled(omnires.NewConfigPatch("500-mine"), "demo")
	again := func(cluster string) func(*testing.T, *omnitest.FakeOmni) {
		return func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustDestroy(t, st, patch)
			time.Sleep(2 * time.Millisecond)
			omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewConfigPatch("500-mine"), cluster))
		}
	}

	for name, meanwhile := range map[string]func(*testing.T, *omnitest.FakeOmni){
		"made again for another cluster": again("other"),
		"made again":                     again("demo"),
		"given to another cluster": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, patch, func(p *omnires.ConfigPatch) { p.Metadata().Labels().Set(omnires.LabelCluster, "other") })
		},
		"taken out of the cluster": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, patch, func(p *omnires.ConfigPatch) { p.Metadata().Labels().Delete(omnires.LabelCluster) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)
			omnitest.MustCreate(t, st, patch)

			plan := mustPlan(t, st, omnitest.FullTemplate, Options{})
			meanwhile(t, st)

			if _, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrPlanOutdated) {
				t.Errorf("error %v", err)
			}

			if found, err := st.Get(t.Context(), patch.Metadata()); err != nil || found.Metadata().Phase() != resource.PhaseRunning {
				t.Errorf("the patch: %v, %v", found, err)
			}
		})
	}
}

// Versions start again with each resource: an update may fit what somebody made again since, and that the copy does not
// show yet.
func TestApplyDoesNotUpdateWhatWasMadeAgain(t *testing.T) {
	fiveOf := omnitest.ClusterDocument + omnitest.ControlPlaneDocument + omnitest.ClassDocument("cpu", "5")
	configured := omnitest.FullTemplate + "---\nkind: Machine\nname: " + omnitest.Machine2 + "\nsystemExtensions: [siderolabs/hello]\n" +
		"patches:\n- name: own\n  inline: {machine: {network: {hostname: a}}}\n"

	for name, test := range map[string]struct {
		before, after string
		meanwhile     func(*testing.T, *omnitest.FakeOmni)
		changed       resource.Resource
	}{
		"the cluster": {
			omnitest.FullTemplate, strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1),
			func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustDestroy(t, st, omnitest.ClusterNamed("demo"))
				time.Sleep(2 * time.Millisecond) // the clock of the in-memory state has to go on
				omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))
			},
			omnitest.ClusterNamed("demo"),
		},
		"the cluster, of which the copy shows all but the ID": {
			omnitest.FullTemplate, strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1),
			func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustChange(t, st, omnires.NewClusterUUID("demo"), func(item *omnires.ClusterUUID) { item.TypedSpec().Value.Uuid = "new" })
			},
			omnitest.ClusterNamed("demo"),
		},
		"a set with another size": {
			fiveOf, strings.Replace(fiveOf, "size: 5", "size: 3", 1),
			madeAgainWithNine,
			omnitest.SetNamed("demo", "workers"),
		},
		"a set that would have grown": {
			fiveOf, strings.Replace(fiveOf, "size: 5", "size: 7", 1),
			madeAgainWithNine,
			omnitest.SetNamed("demo", "workers"),
		},
		"a manifest group that would have got an object": {
			manifests("a full x"), manifests("a full x,y"),
			func(t *testing.T, st *omnitest.FakeOmni) {
				group := groupByHand(t, "200-cluster-demo-a", namespaces("x", "z"), specs.KubernetesManifestGroupSpec_FULL)
				omnitest.MustDestroy(t, st, group)
				time.Sleep(2 * time.Millisecond)
				omnitest.MustCreate(t, st, group)
			},
			omnires.NewKubernetesManifestGroup("200-cluster-demo-a"),
		},
		"a patch of a machine that moved to another cluster": {
			configured, strings.Replace(configured, "hostname: a", "hostname: b", 1),
			madeAgainForOther(omnires.NewConfigPatch("400-cm-" + omnitest.Machine2 + "-own")),
			omnires.NewConfigPatch("400-cm-" + omnitest.Machine2 + "-own"),
		},
		"the extensions of a machine that moved to another cluster": {
			configured, strings.Replace(configured, "siderolabs/hello", "siderolabs/other", 1),
			madeAgainForOther(omnires.NewExtensionsConfiguration("schematic-" + omnitest.Machine2)),
			omnires.NewExtensionsConfiguration("schematic-" + omnitest.Machine2),
		},
		"a set that is gone": {
			fiveOf, strings.Replace(fiveOf, "size: 5", "size: 3", 1),
			func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustDestroy(t, st, omnitest.SetNamed("demo", "workers"))
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.before)

			identity := omnires.NewClusterUUID("demo")
			identity.TypedSpec().Value.Uuid = "old"
			omnitest.MustCreate(t, st, identity)

			plan := mustPlan(t, st, test.after, Options{})
			test.meanwhile(t, st)

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if !errors.Is(err, omni.ErrPlanOutdated) || omni.Classify(err) != omni.ClassConflict || len(result.Taken()) > 0 {
				t.Errorf("%v, %+v", err, result)
			}

			if test.changed == nil {
				return
			}

			if found, err := st.Get(t.Context(), test.changed.Metadata()); err != nil || found.Metadata().Version().Value() != 1 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}

// madeAgainWithNine makes the set of workers again by hand, with nine machines.
func madeAgainWithNine(t *testing.T, st *omnitest.FakeOmni) {
	t.Helper()

	omnitest.MustDestroy(t, st, omnitest.SetNamed("demo", "workers"))
	time.Sleep(2 * time.Millisecond) // the clock of the in-memory state has to go on
	omnitest.MustCreate(t, st, omnitest.ClassSet("demo", "workers", "cpu", 9))
}

// madeAgainForOther makes a resource of a machine again by hand, for cluster "other". Its ID names the machine only.
func madeAgainForOther[R resource.Resource](item R) func(*testing.T, *omnitest.FakeOmni) {
	return func(t *testing.T, st *omnitest.FakeOmni) {
		t.Helper()

		omnitest.MustDestroy(t, st, item)
		time.Sleep(2 * time.Millisecond) // the clock of the in-memory state has to go on
		omnitest.MustCreate(t, st, omnitest.Labelled(item, "other"))
	}
}
