package plan

import (
	"strings"
	"testing"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestHash(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	set := Change{Action: ActionDestroy, Type: omnires.MachineSetType, ID: "demo-workers", Destructive: true, Created: created, OldSize: "3"}
	node := Change{Action: ActionDestroy, Type: omnires.MachineSetNodeType, ID: omnitest.Machine1, Destructive: true, Created: created}
	patch := Change{Action: ActionDestroy, Type: omnires.ConfigPatchType, ID: "p", Created: created}

	base := HashOf([]Change{set, node})
	if len(base) != 64 || strings.ToLower(base) != base {
		t.Errorf("hash %q", base)
	}

	same := map[string][]Change{
		"another order":            {node, set},
		"another reason":           {with(set, func(c *Change) { c.Reason = "x" }), node},
		"another zone":             {with(set, func(c *Change) { c.Created = created.In(time.FixedZone("x", 3600)) }), node},
		"a harmless change":        {set, node, patch},
		"something already begun":  {set, node, with(node, func(c *Change) { c.ID, c.TearingDown = omnitest.Machine2, true })},
		"a create beside it":       {set, node, {Action: ActionCreate, Type: omnires.MachineSetType, ID: "x", NewSize: "3"}},
		"another destructive verb": {with(set, func(c *Change) { c.Action = ActionUpdate }), node},
	}
	for name, changes := range same {
		if got := HashOf(changes); got != base {
			t.Errorf("%s changes the hash", name)
		}
	}

	different := map[string][]Change{
		"one less":          {set},
		"one more":          {set, node, with(node, func(c *Change) { c.ID = omnitest.Machine2 })},
		"another ID":        {with(set, func(c *Change) { c.ID = "demo-other" }), node},
		"another type":      {with(set, func(c *Change) { c.Type = omnires.ClusterType }), node},
		"made again since":  {with(set, func(c *Change) { c.Created = created.Add(time.Nanosecond) }), node},
		"another old size":  {with(set, func(c *Change) { c.OldSize = "4" }), node},
		"another new size":  {with(set, func(c *Change) { c.NewSize = "1" }), node},
		"other machines":    {with(set, func(c *Change) { c.Members = "x" }), node},
		"updated since":     {with(set, func(c *Change) { c.Version = "2" }), node},
		"one already begun": {set, with(node, func(c *Change) { c.TearingDown = true })},
	}
	for name, changes := range different {
		if got := HashOf(changes); got == base {
			t.Errorf("%s does not change the hash", name)
		}
	}

	if HashOf(nil) != "" || HashOf([]Change{patch}) != "" {
		t.Error("a hash without anything destructive")
	}
}

func with(change Change, edit func(*Change)) Change {
	edit(&change)

	return change
}

func TestChangeString(t *testing.T) {
	for want, change := range map[string]Change{
		`create ConfigPatch "p"`:                            {Action: ActionCreate, Type: omnires.ConfigPatchType, ID: "p"},
		`update MachineSet "demo-workers" (gpu/5 -> gpu/0)`: {Action: ActionUpdate, Type: omnires.MachineSetType, ID: "demo-workers", OldSize: "gpu/5", NewSize: "gpu/0"},
		`destroy MachineSet "demo-workers" (3 -> none)`:     {Action: ActionDestroy, Type: omnires.MachineSetType, ID: "demo-workers", OldSize: "3"},
	} {
		if got := change.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A list that gets shorter, or another class, gives a cluster no machine more.
func TestAddition(t *testing.T) {
	set := func(action Action, from, to string) Change {
		return Change{Action: action, Type: TypeMachineSet, ID: "it", OldSize: from, NewSize: to}
	}
	otherClass := set(ActionUpdate, "a/3", "b/3")
	otherClass.Destructive = true

	for name, test := range map[string]struct {
		plan Plan
		want bool
	}{
		"nothing":                       {Plan{}, false},
		"a set":                         {Plan{Changes: []Change{set(ActionCreate, "", "0")}}, true},
		"a set goes":                    {Plan{Changes: []Change{set(ActionDestroy, "3", "")}}, false},
		"a machine":                     {Plan{Changes: []Change{{Action: ActionCreate, Type: TypeMachineSetNode}}}, true},
		"a machine is locked":           {Plan{Changes: []Change{{Action: ActionUpdate, Type: TypeMachineSetNode}}}, false},
		"more of a class":               {Plan{Changes: []Change{set(ActionUpdate, "a/1", "a/unlimited")}}, true},
		"a class in place of a list":    {Plan{Changes: []Change{set(ActionUpdate, "3", "a/3")}}, true},
		"another class":                 {Plan{Changes: []Change{otherClass}}, false},
		"another strategy":              {Plan{Changes: []Change{set(ActionUpdate, "a/3", "a/3")}}, false},
		"another strategy, fewer":       {Plan{Changes: []Change{set(ActionUpdate, "3", "2")}}, false},
		"a patch":                       {Plan{Changes: []Change{{Action: ActionCreate, Type: "ConfigPatches.omni.sidero.dev"}}}, false},
		"a machine that moves":          {Plan{WaitingForOmni: []Change{{Action: ActionCreate, Type: TypeMachineSetNode, ID: "it"}}}, true},
		"a set that comes again":        {Plan{WaitingForOmni: []Change{set(ActionUpdate, "", "")}}, true},
		"a patch that has to wait, too": {Plan{WaitingForOmni: []Change{{Action: ActionUpdate, Type: "ConfigPatches.omni.sidero.dev"}}}, false},
	} {
		if added, got := test.plan.Addition(); got != test.want || (added != Change{}) != test.want {
			t.Errorf("%s: %v, %v", name, added, got)
		}
	}
}

// TestHashOfOutlastsReleases pins what people approve: the spec of an OmniCluster keeps it across an upgrade of the controller.
func TestHashOfOutlastsReleases(t *testing.T) {
	const want = "d18be4b70e77e316f664988a23c3beb254cbf9bdf0d820f8799cda5a005a073e"

	changes := []Change{
		{Action: ActionDestroy, Type: TypeMachineSet, ID: "demo-w", Created: time.Unix(1700000000, 0), OldSize: "2", Members: "m", Destructive: true},
		{Action: ActionUpdate, Type: TypeMachineSet, ID: "demo-x", Created: time.Unix(1700000000, 0), Version: "3", OldSize: "3", NewSize: "1", Destructive: true},
	}
	if got := HashOf(changes); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
