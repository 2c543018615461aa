package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// inventory is an Omni that looks after each write which objects no full group has any more, as the real one does.
type inventory struct {
	state.CoreState

	watched []string // objects
	missing []string // objects that were in no full group after a write, with that write
}

func (i *inventory) look(verb string, pointer resource.Pointer) {
	items, err := i.List(context.Background(), resource.NewMetadata(omnires.NewKubernetesManifestGroup("").Metadata().Namespace(), TypeManifestGroup, "", resource.VersionUndefined))
	if err != nil {
		panic(err)
	}

	var has []string

	for _, group := range fullGroups(items.Items) {
		if group.Metadata().Phase() != resource.PhaseRunning {
			continue
		}

		objects, _ := objectsOf(context.Background(), group)
		for _, object := range objects {
			has = append(has, object.name)
		}
	}

	for _, name := range i.watched {
		if !slices.Contains(has, name) {
			i.missing = append(i.missing, name+" after "+verb+" "+pointer.ID())
		}
	}
}

func (i *inventory) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	err := i.CoreState.Create(ctx, item, options...)
	i.look("create", item.Metadata())

	return err
}

func (i *inventory) Update(ctx context.Context, item resource.Resource, options ...state.UpdateOption) error {
	err := i.CoreState.Update(ctx, item, options...)
	i.look("update", item.Metadata())

	return err
}

func (i *inventory) Destroy(ctx context.Context, pointer resource.Pointer, options ...state.DestroyOption) error {
	err := i.CoreState.Destroy(ctx, pointer, options...)
	i.look("destroy", pointer)

	return err
}

func TestObjectsMoveBetweenManifests(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []string
		watched       string
		want          []string // the writes
	}{
		"to a later one": {
			[]string{"a full x,db", "b full y"},
			[]string{"a full x", "b full y,db"}, "x y db",
			[]string{"update KubernetesManifestGroup 201-cluster-demo-b", "update KubernetesManifestGroup 200-cluster-demo-a"},
		},
		"to an earlier one": {
			[]string{"a full x", "b full y,db"},
			[]string{"a full x,db", "b full y"}, "x y db",
			[]string{"update KubernetesManifestGroup 200-cluster-demo-a", "update KubernetesManifestGroup 201-cluster-demo-b"},
		},
		"to a new one": {
			[]string{"a full x,db"},
			[]string{"a full x", "b full db"}, "x db",
			[]string{"create KubernetesManifestGroup 201-cluster-demo-b", "update KubernetesManifestGroup 200-cluster-demo-a"},
		},
		"along a row": {
			[]string{"a full x,db", "b full y,pg", "c full z"},
			[]string{"a full x", "b full y,db", "c full z,pg"}, "x y z db pg",
			[]string{
				"update KubernetesManifestGroup 202-cluster-demo-c", "update KubernetesManifestGroup 201-cluster-demo-b",
				"update KubernetesManifestGroup 200-cluster-demo-a",
			},
		},
		"both ways": {
			[]string{"a full x,db", "b full y,pg"},
			[]string{"a full x,pg", "b full y,db"}, "x y db pg",
			[]string{
				"update KubernetesManifestGroup 201-cluster-demo-b", "update KubernetesManifestGroup 200-cluster-demo-a",
				"update KubernetesManifestGroup 201-cluster-demo-b",
			},
		},
		"to one that was one-time": {
			[]string{"a full x,db", "b one-time y"},
			[]string{"a full x", "b full y,db"}, "x db",
			[]string{"update KubernetesManifestGroup 201-cluster-demo-b", "update KubernetesManifestGroup 200-cluster-demo-a"},
		},
		"out of all of them": {
			[]string{"a full x,db", "b full y"},
			[]string{"a full x", "b full y,z"}, "x y",
			[]string{"update KubernetesManifestGroup 200-cluster-demo-a", "update KubernetesManifestGroup 201-cluster-demo-b"},
		},
		"from one that is no longer full": {
			[]string{"a full db", "b full y"},
			[]string{"a one-time x", "b full y,db"}, "y db",
			[]string{"update KubernetesManifestGroup 201-cluster-demo-b", "update KubernetesManifestGroup 200-cluster-demo-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, manifests(test.before...))

			seen := &inventory{CoreState: st, watched: strings.Fields(test.watched)}

			got := syncWithin(t, state.WrapCore(seen), manifests(test.after...), 2)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if len(seen.missing) > 0 {
				t.Errorf("Omni removed %v", seen.missing)
			}
		})
	}
}

// syncWithin applies plans until one is empty, and returns the writes.
func syncWithin(t *testing.T, st state.State, document string, most int) []string {
	t.Helper()

	var writes []string

	for range most {
		plan := mustPlan(t, st, document, Options{})

		result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
		if err != nil {
			t.Fatal(err)
		}

		writes = append(writes, changes(result.Applied)...)
	}

	if plan := mustPlan(t, st, document, Options{}); !plan.Empty() {
		t.Errorf("left after %d plans: %v", most, lines(plan))
	}

	return writes
}

// Objects that are in full manifests before and after a change are in one at every moment.
func TestNoObjectIsLostOnItsWay(t *testing.T) {
	foreigntest.Sequential(t)

	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		before, kept := randomManifests(random)
		after, keptAfter := randomManifests(random)

		st := omnitest.NewFakeOmni()
		mustSync(t, st, manifests(before...))

		seen := &inventory{CoreState: st, watched: slices.DeleteFunc(kept, func(name string) bool { return !slices.Contains(keptAfter, name) })}

		syncWithin(t, state.WrapCore(seen), manifests(after...), 4)

		if len(seen.missing) > 0 {
			t.Fatalf("seed %d: from %v to %v, Omni removed %v", seed, before, after, seen.missing)
		}
	}
}

// randomManifests returns up to four manifests, and the objects of the full ones.
func randomManifests(random *rand.Rand) (list, full []string) {
	for i := range 1 + random.IntN(4) {
		mode := "full"
		if random.IntN(6) == 0 {
			mode = "one-time"
		}

		objects := []string{fmt.Sprintf("own-%d", i)}

		for _, name := range []string{"p", "q", "r", "s", "t"} {
			if random.IntN(3) == 0 {
				objects = append(objects, name)
			}
		}

		list = append(list, fmt.Sprintf("m%d %s %s", i, mode, strings.Join(objects, ",")))

		if mode == "full" {
			full = append(full, objects...)
		}
	}

	return list, full
}

// A group keeps an object for as long as the other group has not got it, whatever kept that back.
func TestAMoveThatStops(t *testing.T) {
	before, after := manifests("a full x,db", "b full y"), manifests("a full x", "b full y,db")

	has := func(t *testing.T, st state.State) []string {
		t.Helper()

		group, err := st.Get(t.Context(), omnires.NewKubernetesManifestGroup("200-cluster-demo-a").Metadata())
		if err != nil {
			t.Fatal(err)
		}

		var names []string

		objects, _ := objectsOf(t.Context(), group)
		for _, object := range objects {
			names = append(names, object.name)
		}

		return names
	}

	for name, test := range map[string]struct {
		refuse codes.Code
		change func(*testing.T, *omnitest.FakeOmni)
		admit  func(Change) bool
		forget bool // what the plan writes before
	}{
		"Omni is away":               {refuse: codes.Unavailable},
		"Omni refuses the other":     {refuse: codes.InvalidArgument},
		"the other has no turn":      {admit: func(change Change) bool { return change.ID != "201-cluster-demo-b" }},
		"the other is torn down":     {change: tearDownB},
		"the other does not have it": {forget: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, before)

			if test.change != nil {
				test.change(t, st)
			}

			var target state.CoreState = st
			if test.refuse != codes.OK {
				target = &omnitest.RefusingOmni{CoreState: st, Refuse: "201-cluster-demo-b", With: status.Error(test.refuse, "no")}
			}

			plan := mustPlan(t, st, after, Options{})
			if test.forget {
				plan.steps = slices.DeleteFunc(plan.steps, func(s step) bool { return s.change.ID == "201-cluster-demo-b" })
			}

			_, _ = Apply(t.Context(), state.WrapCore(target), plan, ApplyOptions{Consent: EveryChange, Admit: test.admit})

			if names := has(t, st); !slices.Contains(names, "db") {
				t.Errorf("the first group has %v, and the other one nothing", names)
			}
		})
	}
}

func tearDownB(t *testing.T, st *omnitest.FakeOmni) {
	t.Helper()

	group := omnires.NewKubernetesManifestGroup("201-cluster-demo-b")
	if err := st.AddFinalizer(t.Context(), group.Metadata(), "SomeController"); err != nil {
		t.Fatal(err)
	}

	omnitest.TearDown(t, st, group)
}
