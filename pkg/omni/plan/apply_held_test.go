package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// stricterOmni refuses to create patches with a word in them.
type stricterOmni struct {
	omnitest.RefusingOmni

	word  string
	tried int
}

// Create implements state.CoreState.
func (s *stricterOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	if text, _ := content(item); strings.Contains(text, s.word) {
		s.tried++

		return status.Error(codes.InvalidArgument, "failed to validate: not allowed")
	}

	return s.RefusingOmni.Create(ctx, item, options...)
}

// patchesIn returns a list of patches for a document, each given as "name key".
func patchesIn(list ...string) string {
	text := "patches:\n"

	for _, one := range list {
		name, key, _ := strings.Cut(one, " ")
		text += "- name: " + name + "\n  inline: {machine: {sysctls: {" + key + ": \"1\"}}}\n"
	}

	return text
}

// TestApplyKeepsThePatchWhoseNewIDIsRefused: Omni refuses the patch "old" under any new ID. It stays under the one that it has, as
// long as it is the same patch for the same machines; and what else the template has goes on. Else nothing does.
func TestApplyKeepsThePatchWhoseNewIDIsRefused(t *testing.T) {
	cluster := func(patches ...string) string {
		return strings.Replace(omnitest.ClusterDocument, "name: demo\n", "name: demo\n"+patchesIn(patches...), 1) + omnitest.ControlPlaneDocument
	}
	workers := func(patches ...string) string {
		return omnitest.ClusterDocument + omnitest.ControlPlaneDocument + omnitest.WorkersDocument + patchesIn(patches...)
	}
	others := omnitest.WorkersDocument

	for name, test := range map[string]struct {
		before, after string
		want          []string // the writes
		skipped       []string
		held          string // the ID that the message names
	}{
		"of the cluster": {
			cluster("old old", "gone x"), cluster("new x", "old old") + others,
			[]string{
				"create ConfigPatch 200-cluster-demo-new", "create MachineSet demo-workers", "create MachineSetNode " + omnitest.Machine2,
				"create MachineSetNode " + omnitest.Machine3, "teardown ConfigPatch 201-cluster-demo-gone", "destroy ConfigPatch 201-cluster-demo-gone",
			},
			[]string{"destroy ConfigPatch 200-cluster-demo-old"}, "200-cluster-demo-old",
		},
		"of a set": {
			workers("old old"), workers("new x", "old old"),
			[]string{"create ConfigPatch 400-demo-workers-new"},
			[]string{"destroy ConfigPatch 400-demo-workers-old"}, "400-demo-workers-old",
		},
		"with another name": {
			cluster("old old"), cluster("other old") + others,
			[]string{"create MachineSet demo-workers", "create MachineSetNode " + omnitest.Machine2, "create MachineSetNode " + omnitest.Machine3},
			[]string{"destroy ConfigPatch 200-cluster-demo-old"}, "200-cluster-demo-old",
		},
		"with other content": {
			cluster("old old"), cluster("new x", "old old.more") + others, []string{"create ConfigPatch 200-cluster-demo-new"},
			[]string{
				"create MachineSet demo-workers", "create MachineSetNode " + omnitest.Machine2, "create MachineSetNode " + omnitest.Machine3,
				"destroy ConfigPatch 200-cluster-demo-old",
			}, "",
		},
		"for other machines": {
			cluster("old old"), workers("old old"), nil,
			[]string{
				"create MachineSet demo-workers", "create MachineSetNode " + omnitest.Machine2, "create MachineSetNode " + omnitest.Machine3,
				"destroy ConfigPatch 200-cluster-demo-old",
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.before)

			strict := &stricterOmni{RefusingOmni: omnitest.RefusingOmni{CoreState: st}, word: "old"}

			result, err := Apply(t.Context(), state.WrapCore(strict), mustPlan(t, st, test.after, Options{}), ApplyOptions{Consent: EveryChange})
			if refusalOf(err) == nil || len(result.Refused) != 1 {
				t.Fatal(err, result.Refused)
			}

			if names := strings.Contains(err.Error(), fmt.Sprintf("keeps the same patch as %q", test.held)); names != (test.held != "") {
				t.Error(err)
			}

			if diff := cmp.Diff(test.want, strict.Writes); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(test.skipped, changes(result.Skipped)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApplyTriesFewPatchesThatOmniHolds checks that an Apply asks for ten of them at most, and goes on.
func TestApplyTriesFewPatchesThatOmniHolds(t *testing.T) {
	var before []string
	for i := range 14 {
		before = append(before, fmt.Sprintf("p%d old.n%[1]d", i))
	}

	document := func(patches []string) string {
		return strings.Replace(omnitest.ClusterDocument, "name: demo\n", "name: demo\n"+patchesIn(patches...), 1) + omnitest.ControlPlaneDocument
	}

	st := omnitest.NewFakeOmni()
	mustSync(t, st, document(before))

	strict := &stricterOmni{RefusingOmni: omnitest.RefusingOmni{CoreState: st}, word: "old"}
	plan := mustPlan(t, st, document(append([]string{"new x"}, before...))+omnitest.WorkersDocument, Options{})

	result, err := Apply(t.Context(), state.WrapCore(strict), plan, ApplyOptions{Consent: EveryChange})
	if refusalOf(err) == nil || strict.tried != maxRefusals || len(result.Refused) != maxRefusals || len(result.Skipped) != 4+14 {
		t.Errorf("%v: tried %d, refused %d, skipped %v", err, strict.tried, len(result.Refused), changes(result.Skipped))
	}

	want := []string{
		"create ConfigPatch 200-cluster-demo-new", "create MachineSet demo-workers", "create MachineSetNode " + omnitest.Machine2,
		"create MachineSetNode " + omnitest.Machine3,
	}
	if diff := cmp.Diff(want, strict.Writes); diff != "" {
		t.Error(diff)
	}
}

// TestUpdateOfAPatchKeepsItsBytes: Omni looks at the text of a patch again when its bytes change, and may refuse what it holds.
func TestUpdateOfAPatchKeepsItsBytes(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, patched(patchAsMap))

	before, err := st.Get(t.Context(), omnires.NewConfigPatch("200-cluster-demo-a").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	mustSync(t, st, strings.Replace(patched(patchAsText), "- name: a\n", "- name: a\n  labels: {team: a}\n", 1))

	after, err := st.Get(t.Context(), before.Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if team, _ := after.Metadata().Labels().Get("team"); team != "a" || contentOf(after) != contentOf(before) {
		t.Errorf("team %q, then %q", team, contentOf(after))
	}
}

// TestADisabledPatchStaysDisabled: its place in the list, and so its ID, is another, and its content, too.
func TestADisabledPatchStaysDisabled(t *testing.T) {
	document := func(patches ...string) string {
		return strings.Replace(omnitest.ClusterDocument, "name: demo\n", "name: demo\n"+patchesIn(patches...), 1) + omnitest.ControlPlaneDocument
	}

	for _, test := range []struct {
		name, content string
	}{
		{"old", "x"}, {"old", "changed"}, {"other", "x"},
	} {
		st := omnitest.NewFakeOmni()
		mustSync(t, st, document("old x"))

		_, err := safe.StateUpdateWithConflicts(t.Context(), st, omnires.NewConfigPatch("200-cluster-demo-old").Metadata(), func(patch *omnires.ConfigPatch) error {
			patch.Metadata().Labels().Set(omni.LabelDisabled, "")

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		mustSync(t, st, document("new y", test.name+" "+test.content))

		for id, want := range map[string]bool{"200-cluster-demo-new": false, "201-cluster-demo-" + test.name: true} {
			patch, err := st.Get(t.Context(), omnires.NewConfigPatch(id).Metadata())
			if err != nil {
				t.Fatal(err)
			}

			if _, is := patch.Metadata().Labels().Get(omni.LabelDisabled); is != want {
				t.Errorf("%+v: %s is disabled: %t", test, id, is)
			}
		}
	}
}

// TestADisabledPatchOfOtherMachinesIsAnother: with a set of the same patch, it is not disabled.
func TestADisabledPatchOfOtherMachinesIsAnother(t *testing.T) {
	set := func(name string) string {
		return omnitest.ClusterDocument + omnitest.ControlPlaneDocument + strings.Replace(omnitest.WorkersDocument, "name: workers", "name: "+name, 1) + patchesIn("p x")
	}

	st := omnitest.NewFakeOmni()
	mustSync(t, st, set("one"))
	omnitest.MustChange(t, st, omnires.NewConfigPatch("400-demo-one-p"), func(patch *omnires.ConfigPatch) { patch.Metadata().Labels().Set(omni.LabelDisabled, "") })

	if _, err := Apply(t.Context(), st, mustPlan(t, st, set("two"), Options{}), ApplyOptions{Consent: EveryChange}); err != nil {
		t.Fatal(err)
	}

	patch, err := st.Get(t.Context(), omnires.NewConfigPatch("400-demo-two-p").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if _, disabled := patch.Metadata().Labels().Get(omni.LabelDisabled); disabled {
		t.Error("the patch of the other set is disabled")
	}
}
