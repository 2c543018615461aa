package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// TypeManifestGroup is the type of the groups of Kubernetes objects that Omni applies to a running cluster, as in
// Change.Type.
//
// Omni 1.9 keeps one inventory for the objects of all groups of mode full, and deletes from the cluster the objects of
// the inventory that no such group has any more. Objects of a group of mode one-time are in an inventory that is never
// pruned. So destroying a full group removes its objects, unless another full group has them, too; destroying a
// one-time group removes none. If a group goes from full to one-time, Omni removes its objects, and does not apply them
// again.
const TypeManifestGroup = omnires.KubernetesManifestGroupType

const (
	// reasonPrunes is why the destroy of a manifest group is destructive.
	reasonPrunes = "removes its objects from the running cluster"
	// reasonLeavesFull is why an update that makes a group one-time is destructive.
	reasonLeavesFull = "leaves mode full, which removes its objects from the running cluster"
	// reasonPrunesTheirs is why, in an adoption, an update is destructive that takes objects from a full group.
	reasonPrunesTheirs = "removes objects from the running cluster that were there before the cluster was adopted"
)

// isFull reports whether a resource is a manifest group whose objects Omni removes with the group: one of mode full,
// which is every mode but one-time.
func isFull(item resource.Resource) bool {
	group, isGroup := item.(*omnires.KubernetesManifestGroup)

	return isGroup && group.TypedSpec().Value.GetMode() != specs.KubernetesManifestGroupSpec_ONE_TIME
}

// fullGroups returns the manifest groups of mode full among resources.
func fullGroups(items []resource.Resource) []resource.Resource {
	var groups []resource.Resource

	for _, item := range items {
		if isFull(item) {
			groups = append(groups, item)
		}
	}

	return groups
}

// sortedIDs returns the IDs of resources, sorted.
func sortedIDs(items []resource.Resource) []string {
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, item.Metadata().ID())
	}

	slices.Sort(ids)

	return ids
}

// liveManifests returns the full manifest groups that users or templates made for a cluster. Omni's own have an owner.
func liveManifests(ctx context.Context, st state.State, cluster string) ([]resource.Resource, error) {
	items, err := omni.ListOf(ctx, st, TypeManifestGroup, cluster)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(fullGroups(items), func(item resource.Resource) bool { return item.Metadata().Owner() != "" }), nil
}

// heldGroups are the manifest groups that Omni has under another ID than the library's template gives them, by that ID.
//
// The library's IDs begin with the place in the list, as in "200-cluster-demo-dns"; templates of Omni 1.11 and later have
// "cluster-demo-dns". To Omni an ID is only a name, and it applies the groups of a cluster in no order. So a group keeps the ID
// that it has: a change of the list, another tool's template or a migration of Omni is no reason to destroy it and to make it
// anew. New groups get the library's ID, whatever the version of Omni.
type heldGroups map[resource.ID]*omnires.KubernetesManifestGroup

// holdGroups finds the manifest groups of a template that Omni has under another ID.
func holdGroups(ctx context.Context, st state.State, cluster string, expected []resource.Resource) (heldGroups, error) {
	items, err := omni.ListOf(ctx, st, TypeManifestGroup, cluster)
	if err != nil {
		return nil, err
	}

	held := heldGroups{}

	for _, wanted := range expected {
		id := wanted.Metadata().ID()
		if wanted.Metadata().Type() != TypeManifestGroup || slices.ContainsFunc(items, func(item resource.Resource) bool { return item.Metadata().ID() == id }) {
			continue
		}

		for _, item := range items {
			group, isGroup := item.(*omnires.KubernetesManifestGroup)
			if !isGroup || item.Metadata().Owner() != "" || item.Metadata().Phase() != resource.PhaseRunning || withoutPlace(item.Metadata().ID()) != withoutPlace(id) {
				continue
			}

			// Of several, the one that newer templates have too: it sorts last.
			if held[id] == nil || held[id].Metadata().ID() < item.Metadata().ID() {
				held[id] = group
			}
		}
	}

	return held, nil
}

// withoutPlace returns the ID of a manifest group or a patch without the place in the list: three digits and a dash.
func withoutPlace(id resource.ID) string {
	place, rest, found := strings.Cut(id, "-")
	if found && len(place) == 3 && strings.Trim(place, "0123456789") == "" {
		return rest
	}

	return id
}

// renamed returns a resource of the template under the ID that Omni has it under.
func (h heldGroups) renamed(item resource.Resource) resource.Resource {
	live := h[item.Metadata().ID()]

	wanted, isGroup := item.DeepCopy().(*omnires.KubernetesManifestGroup)
	if live == nil || !isGroup {
		return item
	}

	group := omnires.NewKubernetesManifestGroup(live.Metadata().ID())
	*group.Metadata() = live.Metadata().Copy()
	*group.Metadata().Labels() = *wanted.Metadata().Labels()
	*group.Metadata().Annotations() = *wanted.Metadata().Annotations()
	group.TypedSpec().Value = wanted.TypedSpec().Value

	return group
}

// renamedAll returns the resources of a template, each under the ID that Omni has it under.
func (h heldGroups) renamedAll(items []resource.Resource) []resource.Resource {
	if len(h) == 0 {
		return items
	}

	renamed := make([]resource.Resource, 0, len(items))
	for _, item := range items {
		renamed = append(renamed, h.renamed(item))
	}

	return renamed
}

// updateIn makes the library's create of each group, and its destroy, one update.
func (h heldGroups) updateIn(result *template.SyncResult) {
	isHeld := func(item resource.Resource) bool {
		return item.Metadata().Type() == TypeManifestGroup && h[item.Metadata().ID()] != nil
	}

	for _, item := range result.Create {
		if isHeld(item) {
			result.Update = append(result.Update, template.UpdateChange{Old: h[item.Metadata().ID()], New: h.renamed(item)})
		}
	}

	result.Create = slices.DeleteFunc(result.Create, isHeld)

	for phase, items := range result.Destroy {
		result.Destroy[phase] = slices.DeleteFunc(items, func(item resource.Resource) bool {
			group, isGroup := item.(*omnires.KubernetesManifestGroup)

			return isGroup && slices.ContainsFunc(slices.Collect(maps.Values(h)), func(live *omnires.KubernetesManifestGroup) bool {
				return live.Metadata().ID() == group.Metadata().ID()
			})
		})
	}
}

// judgeManifests decides whether the destroy of a manifest group removes objects. A group that only got another name
// removes none.
func (b planBuilder) judgeManifests(ctx context.Context, s *step) {
	if !isFull(s.old) {
		return
	}

	objects, readable := objectsOf(ctx, s.old)
	keepers, missing := keepersOf(ctx, objects, b.keeping)

	s.keepers = keepers
	s.moved = slices.DeleteFunc(objects, func(object manifestObject) bool { return slices.Contains(missing, object) })

	if !readable || len(missing) > 0 {
		s.change.Reason = reasonPrunes
		s.change.Version = s.old.Metadata().Version().String()
		s.change.Members = b.approvedObjects(missing)
	}
}

// approvedObjects identifies, in an adoption, the objects that a change of a manifest group removes. The live group does not
// say which they are: the documents do, of this group and of those that keep some, and they can change after an approval.
// Otherwise documents may take objects off without one.
func (b planBuilder) approvedObjects(objects []manifestObject) string {
	if !b.options.EveryDestroyIsDestructive || len(objects) == 0 {
		return ""
	}

	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, fmt.Sprintf("%q", object))
	}

	slices.Sort(names)

	return digestOfNames(names...)
}

// judgeManifestUpdate decides whether an update of a manifest group removes objects, and returns false if it has to wait.
func (b planBuilder) judgeManifestUpdate(s *step) bool {
	move := b.moves[s.change.ID]
	s.keepers, s.moved = move.keepers, move.moved

	switch {
	case move.waits:
		s.change.Reason = reasonMoves

		return false
	case isFull(s.old) && !isFull(s.new):
		s.change.Reason = reasonLeavesFull
	case (!move.readable || len(move.removed) > 0) && b.options.EveryDestroyIsDestructive:
		s.change.Reason = reasonPrunesTheirs
	default:
		return true
	}

	s.change.Destructive = true
	s.change.Version = s.old.Metadata().Version().String()
	s.change.Members = b.approvedObjects(move.removed)

	if b.options.EveryDestroyIsDestructive && !move.readable {
		s.change.Members = digestOfNames(specOf(s.new)...) // whatever the group had, it has no more than this then
	}

	return true
}

// withoutGoing leaves out the groups that have to be gone before they can be created again.
func withoutGoing(wanted []resource.Resource, updates map[string]*manifestUpdate) []resource.Resource {
	return slices.DeleteFunc(slices.Clone(wanted), func(item resource.Resource) bool {
		update := updates[item.Metadata().ID()]

		return update != nil && update.isGoing()
	})
}

// keepersOf returns the groups that have some of the objects, and the objects that none of the groups has.
func keepersOf(ctx context.Context, objects []manifestObject, groups []resource.Resource) (keepers []resource.Resource, missing []manifestObject) {
	missing = slices.Clone(objects)

	for _, group := range groups {
		has, _ := objectsOf(ctx, group)
		before := len(missing)

		missing = slices.DeleteFunc(missing, func(object manifestObject) bool { return slices.Contains(has, object) })
		if len(missing) < before {
			keepers = append(keepers, group)
		}
	}

	return keepers, missing
}

// checkManifests checks that a manifest group that is about to be destroyed still is the one of the plan, and, if other
// groups keep its objects, that Omni still has those groups.
func (a *applier) checkManifests(ctx context.Context, s step, found resource.Resource) error {
	if s.change.TearingDown {
		return nil
	}

	if !found.Metadata().Version().Equal(s.old.Metadata().Version()) {
		return fmt.Errorf("%w: %s %q changed since", omni.ErrPlanOutdated, omni.KindOf(s.change.Type), s.change.ID)
	}

	return a.checkMoved(ctx, s)
}

// manifestLimits bound the manifests of one group. The library's own reader has no bounds, and an Omni may send what no
// template made: a group that is beyond them counts as one that cannot be read.
//
//nolint:gochecknoglobals // a constant
var manifestLimits = foreign.Limits{Bytes: 8 << 20, Depth: 128, Nodes: 200_000, Expanded: 16 << 20}

// manifestObject names a Kubernetes object as Omni's inventory does: without the version of its API.
type manifestObject struct{ group, kind, namespace, name string }

// manifest is a Kubernetes object of a manifest group, with its content as JSON.
type manifest struct {
	object  manifestObject
	content []byte
}

// objectsOf lists the objects of a manifest group; readable is false if the manifests cannot be read.
func objectsOf(ctx context.Context, item resource.Resource) (objects []manifestObject, readable bool) {
	manifests, readable := manifestsOf(ctx, item)
	for _, one := range manifests {
		objects = append(objects, one.object)
	}

	return objects, readable
}

// manifestsOf reads the manifests of a group; readable is false if they cannot be read.
func manifestsOf(ctx context.Context, item resource.Resource) (manifests []manifest, readable bool) {
	group, isGroup := item.(*omnires.KubernetesManifestGroup)
	if !isGroup {
		return nil, false
	}

	text, err := bounds.Inflate(group.TypedSpec().Value)
	if err != nil {
		return nil, false
	}

	documents, err := foreign.Documents(ctx, []byte(text), manifestLimits)
	if err != nil {
		return nil, false
	}

	for _, document := range documents {
		if content := string(document); content == "null" || content == "{}" { // only comments
			continue
		}

		var header struct {
			metav1.TypeMeta `json:",inline"`

			Metadata struct{ Name, Namespace string } `json:"metadata"`
		}

		if err := foreign.Unmarshal(ctx, document, manifestLimits, &header); err != nil {
			return nil, false
		}

		kind := header.GroupVersionKind()
		if kind.Kind == "" || header.Metadata.Name == "" {
			return nil, false
		}

		object := manifestObject{kind.Group, kind.Kind, header.Metadata.Namespace, header.Metadata.Name}
		manifests = append(manifests, manifest{object, document})
	}

	return manifests, true
}
