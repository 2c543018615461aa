package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// manifests returns a template whose cluster has manifests, each given as "name mode object,object".
func manifests(list ...string) string {
	text := "  manifests:\n"

	for _, one := range list {
		fields := strings.Fields(one)
		text += "  - name: " + fields[0] + "\n    mode: " + fields[1] + "\n    inline:\n"

		for object := range strings.SplitSeq(fields[2], ",") {
			text += "    - {apiVersion: v1, kind: Namespace, metadata: {name: " + object + "}}\n"
		}
	}

	return strings.Replace(omnitest.ClusterDocument, "  version: v1.35.0\n", "  version: v1.35.0\n"+text, 1) + omnitest.ControlPlaneDocument
}

// groupByHand returns a manifest group of cluster demo that no template made.
func groupByHand(t *testing.T, id, yaml string, mode specs.KubernetesManifestGroupSpec_Mode) *omnires.KubernetesManifestGroup {
	t.Helper()

	group := omnitest.Labelled(omnires.NewKubernetesManifestGroup(id), "demo")
	group.TypedSpec().Value.Mode = mode

	if err := group.TypedSpec().Value.SetUncompressedData([]byte(yaml)); err != nil {
		t.Fatal(err)
	}

	return group
}

func namespaces(names ...string) string {
	text := ""
	for _, name := range names {
		text += "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
	}

	return text
}

// TestPlanKnowsWhatManifestsRemove: the expectations come from Omni's source, and from that of the inventory it uses;
// see TypeManifestGroup.
func TestPlanKnowsWhatManifestsRemove(t *testing.T) {
	full, oneTime := specs.KubernetesManifestGroupSpec_FULL, specs.KubernetesManifestGroupSpec_ONE_TIME

	for name, test := range map[string]struct {
		before []string
		byHand func(*testing.T) *omnires.KubernetesManifestGroup
		after  []string
		want   []string // the destructive changes, with their reasons
	}{
		"a full group goes":       {[]string{"a full x", "b full y"}, nil, []string{"a full x"}, []string{"destroy 201-cluster-demo-b: removes its objects from the running cluster"}},
		"a one-time group goes":   {[]string{"a full x", "b one-time y"}, nil, []string{"a full x"}, nil},
		"the first goes":          {[]string{"a full x", "b full y"}, nil, []string{"b full y"}, []string{"destroy 200-cluster-demo-a: removes its objects from the running cluster"}},
		"another order":           {[]string{"a full x", "b full y"}, nil, []string{"b full y", "a full x"}, nil},
		"one is put before it":    {[]string{"a full x,y"}, nil, []string{"new full z", "a full x,y"}, nil},
		"renamed":                 {[]string{"a full x"}, nil, []string{"b full x"}, nil},
		"renamed, an object less": {[]string{"a full x,y"}, nil, []string{"b full x"}, []string{"destroy 200-cluster-demo-a: removes its objects from the running cluster"}},
		"split":                   {[]string{"a full x,y"}, nil, []string{"b full x", "c full y"}, nil},
		"renamed and one-time":    {[]string{"a full x"}, nil, []string{"b one-time x"}, []string{"destroy 200-cluster-demo-a: removes its objects from the running cluster"}},
		"from full to one-time":   {[]string{"a full x"}, nil, []string{"a one-time x"}, []string{"update 200-cluster-demo-a: leaves mode full, which removes its objects from the running cluster"}},
		"from one-time to full":   {[]string{"a one-time x"}, nil, []string{"a full x"}, nil},
		"other content":           {[]string{"a full x,y"}, nil, []string{"a full z"}, nil},
		"other content, one-time": {[]string{"a one-time x,y"}, nil, []string{"a one-time z"}, nil},
		"made by hand": {
			[]string{"a full x"}, func(t *testing.T) *omnires.KubernetesManifestGroup {
				return groupByHand(t, "by-hand", namespaces("db"), full)
			},
			[]string{"a full x"}, []string{"destroy by-hand: removes its objects from the running cluster"},
		},
		"made by hand, one-time": {
			[]string{"a full x"}, func(t *testing.T) *omnires.KubernetesManifestGroup {
				return groupByHand(t, "by-hand", namespaces("db"), oneTime)
			},
			[]string{"a full x"}, nil,
		},
		"made by hand, what nobody can read": {
			[]string{"a full x"}, func(t *testing.T) *omnires.KubernetesManifestGroup {
				return groupByHand(t, "by-hand", "kind: Namespace\n", full)
			},
			[]string{"a full x"}, []string{"destroy by-hand: removes its objects from the running cluster"},
		},
		"made by hand, without a mode": {
			[]string{"a full x"}, func(t *testing.T) *omnires.KubernetesManifestGroup {
				return groupByHand(t, "by-hand", namespaces("db"), 0)
			},
			[]string{"a full x"}, []string{"destroy by-hand: removes its objects from the running cluster"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests(test.before...))

			if test.byHand != nil {
				omnitest.MustCreate(t, st, test.byHand(t))
			}

			var got []string

			plan := mustPlan(t, st, manifests(test.after...), Options{})
			for _, change := range plan.Destructive() {
				got = append(got, string(change.Action)+" "+change.ID+": "+change.Reason)

				if change.Version == "" || change.Created.IsZero() {
					t.Errorf("%+v", change)
				}
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			// Without consent Apply does the rest, and holds the destructive changes.
			result, err := Apply(t.Context(), st, plan, ApplyOptions{})
			if err != nil || len(result.Held) != len(test.want) {
				t.Errorf("held %v, %v", changes(result.Held), err)
			}

			if again := mustPlan(t, st, manifests(test.after...), Options{}); len(again.Changes) != len(test.want) || again.Hash != plan.Hash {
				t.Errorf("left: %v", lines(again))
			}

			mustSync(t, st, manifests(test.after...))
		})
	}
}

func TestPlanListsFullManifests(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, manifests("a full x", "b one-time y", "c full z"))
	omnitest.MustCreate(t, st, groupByHand(t, "by-hand", namespaces("db"), specs.KubernetesManifestGroupSpec_FULL))

	system := omnires.NewKubernetesManifestGroup("exposer")
	system.Metadata().Labels().Set(omnires.LabelCluster, "demo")

	if err := system.Metadata().SetOwner("OmniItself"); err != nil {
		t.Fatal(err)
	}

	omnitest.MustCreate(t, st, system)

	plan := mustPlan(t, st, manifests("a full x", "b full y"), Options{})

	if diff := cmp.Diff([]string{"200-cluster-demo-a", "201-cluster-demo-b"}, plan.WantedManifests); diff != "" {
		t.Errorf("wanted: %s", diff)
	}

	if diff := cmp.Diff([]string{"200-cluster-demo-a", "202-cluster-demo-c", "by-hand"}, plan.LiveManifests); diff != "" {
		t.Errorf("live: %s", diff)
	}
}

// TestManifestsThatAreTornDownKeepNothing: a group that is being torn down cannot keep another group's objects: it has
// to be gone before it can be created again.
func TestManifestsThatAreTornDownKeepNothing(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, manifests("a full x", "b full x"))

	group := omnires.NewKubernetesManifestGroup("200-cluster-demo-a")
	if err := st.AddFinalizer(t.Context(), group.Metadata(), "SomeController"); err != nil {
		t.Fatal(err)
	}

	omnitest.TearDown(t, st, group)

	plan := mustPlan(t, st, manifests("a full x"), Options{})
	if destructive := changes(plan.Destructive()); !slices.Equal(destructive, []string{"destroy KubernetesManifestGroup 201-cluster-demo-b"}) {
		t.Errorf("destructive: %v", destructive)
	}
}

// TestApplyLooksAgainBeforeItDestroysManifests checks that a group stays if Omni changed between the plan and its
// destroys.
func TestApplyLooksAgainBeforeItDestroysManifests(t *testing.T) {
	group := omnires.NewKubernetesManifestGroup
	setMode := func(mode specs.KubernetesManifestGroupSpec_Mode) func(*omnires.KubernetesManifestGroup) {
		return func(g *omnires.KubernetesManifestGroup) { g.TypedSpec().Value.Mode = mode }
	}

	for name, test := range map[string]struct {
		after     []string
		id        string
		meanwhile func(*testing.T, *omnitest.FakeOmni)
	}{
		"another mode": {[]string{"a full x", "b full y"}, "202-cluster-demo-c", func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, group("202-cluster-demo-c"), setMode(specs.KubernetesManifestGroupSpec_FULL))
		}},
		"other objects": {[]string{"a full x"}, "201-cluster-demo-b", func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, group("201-cluster-demo-b"), func(g *omnires.KubernetesManifestGroup) { g.TypedSpec().Value.Data += namespaces("db") }) //nolint:staticcheck // short texts are not compressed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests("a full x", "b full y", "c one-time z"))

			plan := mustPlan(t, st, manifests(test.after...), Options{})
			test.meanwhile(t, st)

			_, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if omni.Classify(err) != omni.ClassConflict {
				t.Errorf("error %v", err)
			}

			found, err := st.Get(t.Context(), group(test.id).Metadata())
			if err != nil || found.Metadata().Phase() != resource.PhaseRunning {
				t.Errorf("the group: %v %v", found, err)
			}
		})
	}
}

// TestApplyLooksForTheKeepersOfManifests: the group that also has the objects is removed between the plan and the
// destroy.
func TestApplyLooksForTheKeepersOfManifests(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *omnitest.FakeOmni){
		"gone": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustDestroy(t, st, omnires.NewKubernetesManifestGroup("200-cluster-demo-a"))
		},
		"one-time": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnires.NewKubernetesManifestGroup("200-cluster-demo-a"), func(g *omnires.KubernetesManifestGroup) {
				g.TypedSpec().Value.Mode = specs.KubernetesManifestGroupSpec_ONE_TIME
			})
		},
		"an object less": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnires.NewKubernetesManifestGroup("200-cluster-demo-a"), func(g *omnires.KubernetesManifestGroup) {
				g.TypedSpec().Value.Data, g.TypedSpec().Value.CompressedData = namespaces("y"), nil //nolint:staticcheck // the same
			})
		},
		"going": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.TearDown(t, st, omnires.NewKubernetesManifestGroup("200-cluster-demo-a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests("a full x", "b full x"))

			plan := mustPlan(t, st, manifests("a full x"), Options{})
			if len(plan.Destructive()) > 0 || plan.Count(ActionDestroy) != 1 {
				t.Fatalf("plan %v", lines(plan))
			}

			meanwhile(t, st)

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if !errors.Is(err, omni.ErrPlanOutdated) || len(result.Taken()) > 0 {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

// TestManifestsOfAnAdoptedCluster checks that in an adoption every destroy needs consent.
func TestManifestsOfAnAdoptedCluster(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, manifests("a full x", "b one-time y"))

	plan := mustPlan(t, st, manifests("c full x"), Options{EveryDestroyIsDestructive: true})
	want := []string{"destroy KubernetesManifestGroup 200-cluster-demo-a", "destroy KubernetesManifestGroup 201-cluster-demo-b"}

	if diff := cmp.Diff(want, changes(plan.Destructive())); diff != "" {
		t.Error(diff)
	}
}

// So does an update that takes objects from a group, and only such an update.
func TestObjectsOfAnAdoptedCluster(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []string
		want          []string
	}{
		"an object less":          {[]string{"a full x,y"}, []string{"a full x"}, []string{"update KubernetesManifestGroup 200-cluster-demo-a"}},
		"an object more":          {[]string{"a full x"}, []string{"a full x,y"}, nil},
		"an object moves":         {[]string{"a full x,y", "b full z"}, []string{"a full x", "b full z,y"}, nil},
		"an object less one-time": {[]string{"a one-time x,y"}, []string{"a one-time x"}, nil},
	} {
		st := omnitest.NewFakeOmni()
		mustSync(t, st, manifests(test.before...))

		plan := mustPlan(t, st, manifests(test.after...), Options{EveryDestroyIsDestructive: true})
		if diff := cmp.Diff(test.want, changes(plan.Destructive()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}

		if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		if left := mustPlan(t, st, manifests(test.after...), Options{EveryDestroyIsDestructive: true}); len(left.Changes) != len(test.want) {
			t.Errorf("%s: left %v", name, lines(left))
		}
	}
}

// An approval in an adoption is for the objects that a manifest group loses now. If the documents remove more objects later, the
// hash is another one; any other change of the documents leaves it.
func TestApprovalIsForTheObjectsOfAnAdoptedCluster(t *testing.T) {
	for name, test := range map[string]struct {
		live, approved, later []string
		same                  bool
	}{
		"an object less":                       {[]string{"a full x,y,z"}, []string{"a full x,y"}, []string{"a full x"}, false},
		"another object":                       {[]string{"a full x,y,z"}, []string{"a full x,y"}, []string{"a full x,z"}, false},
		"an object that another group had":     {[]string{"a full x,y,z"}, []string{"a full x", "b full y"}, []string{"a full x", "b full w"}, false},
		"of a group that leaves mode full":     {[]string{"a full x,y"}, []string{"a one-time x", "b full y"}, []string{"a one-time x", "b full w"}, false},
		"of a group that goes":                 {[]string{"a full x,y"}, []string{"b full y"}, []string{"b full w"}, false},
		"an object more":                       {[]string{"a full x,y,z"}, []string{"a full x,y"}, []string{"a full w,x,y"}, true},
		"the order":                            {[]string{"a full x,y,z"}, []string{"a full x"}, []string{"a full w,x"}, true},
		"another group":                        {[]string{"a full x,y,z"}, []string{"a full x"}, []string{"a full x", "b full w"}, true},
		"a group goes, another has new things": {[]string{"a full x,y"}, []string{"b full y"}, []string{"b full y,w"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests(test.live...))

			approved := mustPlan(t, st, manifests(test.approved...), Options{EveryDestroyIsDestructive: true})
			later := mustPlan(t, st, manifests(test.later...), Options{EveryDestroyIsDestructive: true})

			if approved.Hash == "" || (approved.Hash == later.Hash) != test.same {
				t.Errorf("the hash is %q for %v, then %q for %v", approved.Hash, lines(approved), later.Hash, lines(later))
			}

			key := func(plan *Plan) string { return plan.Destructive()[0].Key() }
			if (key(approved) == key(later)) != test.same {
				t.Errorf("the remembered approval is for %q, then needed for %q", key(approved), key(later))
			}
		})
	}
}

// What a group loses that cannot be read is not known, so an approval is for the content that it gets.
func TestApprovalIsForTheContentOfAGroupThatCannotBeRead(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, manifests("a full x"))
	omnitest.MustChange(t, st, omnires.NewKubernetesManifestGroup("200-cluster-demo-a"), func(g *omnires.KubernetesManifestGroup) {
		if err := g.TypedSpec().Value.SetUncompressedData([]byte("a: [")); err != nil {
			t.Fatal(err)
		}
	})

	hash := func(document string) string {
		return mustPlan(t, st, document, Options{EveryDestroyIsDestructive: true}).Hash
	}

	approved := hash(manifests("a full x,y"))
	if approved == "" || hash(manifests("a full x")) == approved || hash(manifests("a full x,y", "b full z")) != approved {
		t.Errorf("%q for two objects, %q for one, %q with another group", approved, hash(manifests("a full x")), hash(manifests("a full x,y", "b full z")))
	}
}

// An Omni may send groups that no template made. What cannot be read within bounds counts as unknown, so its destroy asks.
func TestHostileManifests(t *testing.T) {
	for name, text := range map[string]string{
		"millions of values": strings.Repeat("a,", 4<<20-16),
		"a list":             "a: [" + strings.Repeat("a,", 2<<20) + "]",
		"aliases":            string(foreigntest.Aliased(60, 20_000)),
		"doubled aliases":    string(foreigntest.Doubled(40)),
		"deep":               "a: " + strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests("a full x"))
			omnitest.MustCreate(t, st, groupByHand(t, "by-hand", text, specs.KubernetesManifestGroupSpec_FULL))

			var plan *Plan

			foreigntest.WantPeak(t, 128<<20, func() { plan = mustPlan(t, st, manifests("a full x"), Options{}) })

			if found := plan.Destructive(); len(found) != 1 || found[0].ID != "by-hand" {
				t.Errorf("%v", changes(found))
			}
		})
	}
}

// moveGroups gives the manifest groups of a state the IDs that templates of Omni 1.11 have, as a migration or another template
// would.
func moveGroups(t *testing.T, st state.State, names ...string) {
	t.Helper()

	for i, name := range names {
		old, err := safe.StateGetByID[*omnires.KubernetesManifestGroup](t.Context(), st, fmt.Sprintf("20%d-cluster-demo-%s", i, name))
		if err != nil {
			t.Fatal(err)
		}

		moved := omnires.NewKubernetesManifestGroup("cluster-demo-" + name)
		*moved.Metadata().Labels() = *old.Metadata().Labels()
		*moved.Metadata().Annotations() = *old.Metadata().Annotations()
		moved.TypedSpec().Value = old.TypedSpec().Value.CloneVT()
		omnitest.MustCreate(t, st, moved)

		if err := st.TeardownAndDestroy(t.Context(), old.Metadata()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlanKeepsTheIDOfAManifestGroup: the ID of a group differs between templates of different versions of Omni, and with the
// place in the list. Neither is a reason to destroy a group.
func TestPlanKeepsTheIDOfAManifestGroup(t *testing.T) {
	for name, test := range map[string]struct {
		before []string
		moved  bool
		after  []string
		want   []string
	}{
		"the same":                 {[]string{"a full x", "b one-time y"}, true, []string{"a full x", "b one-time y"}, []string{}},
		"another place":            {[]string{"a full x", "b one-time y"}, false, []string{"b one-time y", "a full x"}, []string{}},
		"another place, moved":     {[]string{"a full x", "b one-time y"}, true, []string{"b one-time y", "a full x"}, []string{}},
		"one more":                 {[]string{"a full x"}, true, []string{"new full z", "a full x"}, []string{`create KubernetesManifestGroup "200-cluster-demo-new"`}},
		"other content":            {[]string{"a full x"}, true, []string{"a full x,y"}, []string{`update KubernetesManifestGroup "cluster-demo-a"`}},
		"an object goes elsewhere": {[]string{"a full x,y", "b full z"}, true, []string{"a full x", "b full y,z"}, []string{`update KubernetesManifestGroup "cluster-demo-b"`, `update KubernetesManifestGroup "cluster-demo-a"`}},
		"one goes":                 {[]string{"a full x", "b full y"}, true, []string{"b full y"}, []string{`! destroy KubernetesManifestGroup "cluster-demo-a"`}},
		"renamed":                  {[]string{"a full x"}, true, []string{"b full x"}, []string{`create KubernetesManifestGroup "200-cluster-demo-b"`, `destroy KubernetesManifestGroup "cluster-demo-a"`}},
		"leaves mode full":         {[]string{"a full x"}, true, []string{"a one-time x"}, []string{`! update KubernetesManifestGroup "cluster-demo-a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests(test.before...))

			if test.moved {
				var names []string
				for _, one := range test.before {
					names = append(names, strings.Fields(one)[0])
				}

				moveGroups(t, st, names...)
			}

			plan := mustPlan(t, st, manifests(test.after...), Options{})
			if diff := cmp.Diff(test.want, lines(plan)); diff != "" {
				t.Error(diff)
			}

			mustSync(t, st, manifests(test.after...))

			if again := mustPlan(t, st, manifests(test.after...), Options{}); !again.Empty() {
				t.Errorf("then: %v", lines(again))
			}
		})
	}
}

// TestPlanOfAManifestGroupUnderTwoIDs: while somebody moves a group, Omni has it twice. One goes, and no object with it. What is going
// already, or Omni's own, is not kept.
func TestPlanOfAManifestGroupUnderTwoIDs(t *testing.T) {
	for name, test := range map[string]struct {
		also func(*testing.T, state.State, *omnires.KubernetesManifestGroup)
		id   string
		want []string
	}{
		"the library's and another": {nil, "200-cluster-demo-a", []string{`destroy KubernetesManifestGroup "cluster-demo-a"`}},
		"two others":                {nil, "207-cluster-demo-a", []string{`destroy KubernetesManifestGroup "207-cluster-demo-a"`}},
		"no number":                 {nil, "20-cluster-demo-a", []string{`destroy KubernetesManifestGroup "20-cluster-demo-a"`}},
		"one that is going": {
			func(t *testing.T, st state.State, group *omnires.KubernetesManifestGroup) {
				t.Helper()

				if err := st.AddFinalizer(t.Context(), group.Metadata(), "SomeController"); err != nil {
					t.Fatal(err)
				}

				omnitest.TearDown(t, st, group)
			},
			"", []string{`create KubernetesManifestGroup "200-cluster-demo-a"`, `destroy KubernetesManifestGroup "cluster-demo-a" ...`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests("a full x"))
			moveGroups(t, st, "a")

			if test.id != "" {
				omnitest.MustCreate(t, st, groupByHand(t, test.id, namespaces("x"), specs.KubernetesManifestGroupSpec_FULL))
			}

			if test.also != nil {
				test.also(t, st, omnires.NewKubernetesManifestGroup("cluster-demo-a"))
			}

			got := slices.DeleteFunc(lines(mustPlan(t, st, manifests("a full x"), Options{})), func(line string) bool { return strings.HasPrefix(line, "update") })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
