package omnisim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/google/go-cmp/cmp"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// The index finds what a look at every resource finds, after any changes.
func TestIndexedState(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain := inmem.NewState(resources.DefaultNamespace)
	st := state.WrapCore(newIndexedState(plain))

	for range 2000 {
		patch := omni.NewConfigPatch(fmt.Sprint("patch-", random.IntN(30)))

		if random.IntN(4) == 0 {
			if err := st.Destroy(t.Context(), patch.Metadata()); err != nil && !state.IsNotFoundError(err) {
				t.Fatal(err)
			}

			continue
		}

		label := func(res resource.Resource) error {
			for _, key := range append(indexedLabels(), "another") {
				res.Metadata().Labels().Delete(key)

				if value := random.IntN(4); value > 0 {
					res.Metadata().Labels().Set(key, fmt.Sprint(value))
				}
			}

			return nil
		}

		_ = label(patch)

		err := st.Create(t.Context(), patch)
		if state.IsConflictError(err) {
			_, err = st.UpdateWithConflicts(t.Context(), patch.Metadata(), label)
		}

		if err != nil {
			t.Fatal(err)
		}
	}

	of := func(options ...resource.LabelQueryOption) state.ListOption { return state.WithLabelQuery(options...) }

	for name, query := range map[string][]state.ListOption{
		"all":             nil,
		"cluster":         {of(resource.LabelEqual(omni.LabelCluster, "1"))},
		"set":             {of(resource.LabelEqual(omni.LabelMachineSet, "2"))},
		"nothing":         {of(resource.LabelEqual(omni.LabelMachineSet, "4"))},
		"cluster and set": {of(resource.LabelEqual(omni.LabelCluster, "1"), resource.LabelEqual(omni.LabelMachineSet, "2"))},
		"cluster or set":  {of(resource.LabelEqual(omni.LabelCluster, "1")), of(resource.LabelEqual(omni.LabelMachineSet, "2"))},
		"other clusters":  {of(resource.LabelEqual(omni.LabelCluster, "1", resource.NotMatches))},
		"some clusters":   {of(resource.LabelIn(omni.LabelCluster, []string{"1", "2"}))},
		"another label":   {of(resource.LabelEqual("another", "1"))},
	} {
		kind := omni.NewConfigPatch("").Metadata()
		want, err := plain.List(t.Context(), kind, query...)

		if err != nil {
			t.Fatal(err)
		}

		got, err := st.List(t.Context(), kind, query...)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(idsOf(want), idsOf(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func idsOf(list resource.List) []resource.ID {
	ids := slices.Grow([]resource.ID{}, len(list.Items))
	for _, res := range list.Items {
		ids = append(ids, res.Metadata().ID()+"@"+res.Metadata().Version().String())
	}

	return ids
}
