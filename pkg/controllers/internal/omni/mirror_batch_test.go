package omni

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func event(kind state.EventType, name string) state.Event {
	return state.Event{Type: kind, Resource: clusterNamed(name)}
}

func TestFillSnapshot(t *testing.T) {
	failure := errors.New("boom")

	for name, test := range map[string]struct {
		batch []state.Event
		ids   []string
		rest  int
		done  bool
		err   error
	}{
		"nothing yet":             {nil, nil, 0, false, nil},
		"some contents":           {[]state.Event{event(state.Created, "a"), event(state.Created, "b")}, []string{"a", "b"}, 0, false, nil},
		"all of it, and no more":  {[]state.Event{event(state.Created, "a"), {Type: state.Bootstrapped}}, []string{"a"}, 0, true, nil},
		"all of it, and a change": {[]state.Event{{Type: state.Bootstrapped}, event(state.Destroyed, "a")}, nil, 1, true, nil},
		"gone before the end":     {[]state.Event{event(state.Created, "a"), event(state.Destroyed, "a"), {Type: state.Bootstrapped}}, nil, 0, true, nil},
		"changed before the end":  {[]state.Event{event(state.Created, "a"), event(state.Updated, "a")}, []string{"a"}, 0, false, nil},
		"nothing to do":           {[]state.Event{{Type: state.Noop}}, nil, 0, false, nil},
		"a failure":               {[]state.Event{event(state.Created, "a"), {Type: state.Errored, Error: failure}}, []string{"a"}, 0, false, failure},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := map[resource.ID]resource.Resource{}

			rest, done, err := fillSnapshot(snapshot, test.batch)
			if len(rest) != test.rest || done != test.done || !errors.Is(err, test.err) {
				t.Errorf("rest %v, done %v, error %v", rest, done, err)
			}

			if diff := cmp.Diff(test.ids, slices.Sorted(maps.Keys(snapshot))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStoreTellsOnlyDifferences(t *testing.T) {
	morning := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newStore(mirroredKinds())

	for _, step := range []struct {
		name string
		item *omnires.Cluster
		gone bool
		want []string
	}{
		{"new", at(t, "1", morning), false, []string{"demo"}},
		{"the same again", at(t, "1", morning), false, nil},
		{"a new version", at(t, "2", morning), false, []string{"demo"}},
		{"gone", at(t, "2", morning), true, []string{"demo"}},
		{"gone already", at(t, "2", morning), true, nil},
		{"made again, the same version", at(t, "2", morning.Add(time.Hour)), false, []string{"demo"}},
	} {
		if told := s.put(step.item, step.gone); !slices.Equal(step.want, told) {
			t.Errorf("%s: told %v", step.name, told)
		}
	}

	if clusters := s.put(omnires.NewCluster("x"), true); len(clusters) != 0 {
		t.Errorf("told of %v", clusters)
	}
}

func TestHealth(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	start := now
	kinds := []mirroredKind{{omnires.ClusterType, scopeID}, {omnires.MachineSetType, scopeLabel}}
	keeper := newHealthKeeper(kinds, func() time.Time { return now })
	lost := func(resourceType string, err error) func() bool {
		return func() bool { return keeper.lost(resourceType, err) }
	}
	found := func(resourceType string) func() bool {
		return func() bool { return keeper.found(resourceType) }
	}

	if diff := cmp.Diff(Health{Since: start, Class: ClassNotReady, Message: "reading 2 kinds of resources"}, keeper.get()); diff != "" {
		t.Error(diff)
	}

	for _, step := range []struct {
		name    string
		do      func() bool
		changed bool
		want    Health
	}{
		{"one is there", found(omnires.ClusterType), false, Health{Since: start, Class: ClassNotReady, Message: "reading 1 kinds of resources"}},
		{"one is lost", lost(omnires.MachineSetType, ErrKeyExpired), true, Health{Since: start, Class: ClassKeyExpired, Message: "the watch of MachineSet is lost: " + Message(ErrKeyExpired)}},
		{"all are there", found(omnires.MachineSetType), true, Health{Synced: true, Since: start.Add(3 * time.Minute)}},
		{"a moment later", found(omnires.MachineSetType), false, Health{Synced: true, Since: start.Add(3 * time.Minute)}},
		{"lost", lost(omnires.MachineSetType, ErrClosed), true, Health{Since: start.Add(5 * time.Minute), Class: ClassNotReady, Message: "the watch of MachineSet is lost: " + ErrClosed.Error()}},
		{"another is lost, too", lost(omnires.ClusterType, ErrClosed), false, Health{Since: start.Add(5 * time.Minute), Class: ClassNotReady, Message: "2 watches are lost; Cluster: " + ErrClosed.Error()}},
		{"for another reason", lost(omnires.ClusterType, ErrKeyExpired), true, Health{Since: start.Add(5 * time.Minute), Class: ClassKeyExpired, Message: "2 watches are lost; Cluster: " + Message(ErrKeyExpired)}},
	} {
		now = now.Add(time.Minute)

		if changed := step.do(); changed != step.changed {
			t.Errorf("%s: changed %v", step.name, changed)
		}

		if diff := cmp.Diff(step.want, keeper.get()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}
