package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// reasonMoves is what an update waits for that must not be made before another group has the objects.
const reasonMoves = "another manifest group has to have its objects first"

// manifestMoves orders the updates of manifest groups. Omni removes an object from the running cluster at the moment in
// which no full group has it, so a group that gets an object from another one is written before that one.
type manifestMoves struct {
	wanted  []resource.Resource // full groups of the template
	updates map[string]*manifestUpdate
	objects map[resource.Resource][]manifestObject
	ordered []*manifestUpdate
}

// manifestUpdate is the update of a manifest group.
type manifestUpdate struct {
	template.UpdateChange

	// keepers are the groups that have the objects which this group gives away, and moved these objects.
	keepers []resource.Resource
	moved   []manifestObject
	// removed are the objects that the group loses and the template does not want. They are all of these only if the group
	// is readable.
	removed  []manifestObject
	readable bool
	// waits is true if the update cannot be made yet.
	waits bool

	visiting, visited bool
}

// orderManifests returns updates with those of manifest groups in an order in which no object is lost on its way from one
// group to another, and what these updates rely on, by ID. In a circle of groups one keeps what it gives away until the
// next plan.
func orderManifests(ctx context.Context, updates []template.UpdateChange, wanted []resource.Resource) ([]template.UpdateChange, map[string]*manifestUpdate) {
	m := &manifestMoves{wanted: wanted, updates: map[string]*manifestUpdate{}, objects: map[resource.Resource][]manifestObject{}}

	var places []int

	for i, update := range updates {
		if update.New.Metadata().Type() == TypeManifestGroup {
			places = append(places, i)
			m.updates[update.New.Metadata().ID()] = &manifestUpdate{UpdateChange: update}
		}
	}

	for _, place := range places {
		m.visit(ctx, m.updates[updates[place].New.Metadata().ID()])
	}

	ordered := slices.Clone(updates)
	for i, place := range places {
		ordered[place] = m.ordered[i].UpdateChange
	}

	return ordered, m.updates
}

// visit puts an update behind those that take its objects.
func (m *manifestMoves) visit(ctx context.Context, u *manifestUpdate) {
	if u.visiting || u.visited {
		return
	}

	u.visiting = true
	lost, readable := m.lost(ctx, u)
	u.readable = readable

	for _, object := range lost {
		for _, taker := range m.takers(ctx, u, object) {
			if next := m.updates[taker.Metadata().ID()]; next != nil && !m.had(ctx, next, object) {
				m.visit(ctx, next)
			}
		}
	}

	m.assign(ctx, u, lost)
	u.visiting, u.visited = false, true
	m.ordered = append(m.ordered, u)
}

// assign decides about each object that a group gives away: another group has it by then, or this one keeps it.
func (m *manifestMoves) assign(ctx context.Context, u *manifestUpdate, lost []manifestObject) {
	var kept []manifestObject

	for _, object := range lost {
		takers := m.takers(ctx, u, object)
		at := slices.IndexFunc(takers, func(taker resource.Resource) bool {
			next := m.updates[taker.Metadata().ID()]

			return next == nil || !next.isGoing() && !next.waits && (next.visited || m.had(ctx, next, object))
		})

		switch {
		case len(takers) == 0:
			u.removed = append(u.removed, object)
		case at < 0:
			kept = append(kept, object)
		default:
			u.moved = append(u.moved, object)
			if !slices.Contains(u.keepers, takers[at]) {
				u.keepers = append(u.keepers, takers[at])
			}
		}
	}

	if len(kept) > 0 {
		u.waits = !keepObjects(ctx, u, kept)
	}
}

// isGoing reports whether the group has to be gone before it can be created again.
func (u *manifestUpdate) isGoing() bool { return u.Old.Metadata().Phase() == resource.PhaseTearingDown }

// lost returns the objects that an update takes from a group from which Omni removes them; readable is false if the
// group cannot be read.
func (m *manifestMoves) lost(ctx context.Context, u *manifestUpdate) (lost []manifestObject, readable bool) {
	if !isFull(u.Old) || u.isGoing() {
		return nil, true
	}

	lost, readable = objectsOf(ctx, u.Old)
	m.objects[u.Old] = slices.Clone(lost)

	if isFull(u.New) {
		stay := m.objectsOf(ctx, u.New)
		lost = slices.DeleteFunc(lost, func(object manifestObject) bool { return slices.Contains(stay, object) })
	}

	return lost, readable
}

// takers returns the other full groups of the template that have an object.
func (m *manifestMoves) takers(ctx context.Context, u *manifestUpdate, object manifestObject) []resource.Resource {
	var takers []resource.Resource

	for _, group := range m.wanted {
		if group.Metadata().ID() != u.New.Metadata().ID() && slices.Contains(m.objectsOf(ctx, group), object) {
			takers = append(takers, group)
		}
	}

	return takers
}

// had reports whether Omni has an object in a full group before its update.
func (m *manifestMoves) had(ctx context.Context, u *manifestUpdate, object manifestObject) bool {
	return isFull(u.Old) && !u.isGoing() && slices.Contains(m.objectsOf(ctx, u.Old), object)
}

// objectsOf remembers the objects of each group; a group that cannot be read has none.
func (m *manifestMoves) objectsOf(ctx context.Context, group resource.Resource) []manifestObject {
	found, read := m.objects[group]
	if !read {
		found, _ = objectsOf(ctx, group)
		m.objects[group] = found
	}

	return found
}

// keepObjects makes an update keep objects of the old group; false if it cannot.
func keepObjects(ctx context.Context, u *manifestUpdate, objects []manifestObject) bool {
	updated, isGroup := u.New.DeepCopy().(*omnires.KubernetesManifestGroup)
	if !isGroup || !isFull(updated) {
		return false
	}

	text, err := bounds.Inflate(updated.TypedSpec().Value)
	if err != nil {
		return false
	}

	documents, readable := manifestsOf(ctx, u.Old)
	if !readable {
		return false
	}

	for _, document := range documents {
		if slices.Contains(objects, document.object) {
			text = strings.TrimRight(text, "\n") + "\n---\n" + string(document.content) + "\n"
		}
	}

	if err := updated.TypedSpec().Value.SetUncompressedData([]byte(text)); err != nil {
		return false
	}

	u.New = updated

	return true
}

// checkMoved checks that Omni has the objects that a step takes from a manifest group in the groups that are to keep them.
func (a *applier) checkMoved(ctx context.Context, s step) error {
	var groups []resource.Resource

	for _, keeper := range s.keepers {
		item, err := a.live.Get(ctx, keeper.Metadata())
		if state.IsNotFoundError(err) {
			continue
		}

		if err != nil {
			return fmt.Errorf("read KubernetesManifestGroup %q again: %w", keeper.Metadata().ID(), err)
		}

		if isFull(item) && item.Metadata().Phase() == resource.PhaseRunning {
			groups = append(groups, item)
		}
	}

	if _, missing := keepersOf(ctx, s.moved, groups); len(missing) > 0 {
		return fmt.Errorf("%w: objects of %s %q are in no other group any more", omni.ErrPlanOutdated, omni.KindOf(s.change.Type), s.change.ID)
	}

	return nil
}
