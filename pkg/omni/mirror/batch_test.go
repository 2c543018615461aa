package mirror

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func event(kind state.EventType, name string) state.Event {
	return state.Event{Type: kind, Resource: omnitest.ClusterNamed(name)}
}

// newTestReader returns a reader of clusters, for a mirror without watches.
func newTestReader(t *testing.T, counted *bounds.Account) *watchReader {
	t.Helper()

	m := Start(t.Context(), omnitest.SilentOmni{State: omnitest.NewFakeOmni()}, Options{
		Open: func(func(error)) *bounds.Account { return counted },
	})
	t.Cleanup(m.Stop)

	alarm := time.NewTimer(time.Hour)
	t.Cleanup(func() { alarm.Stop() })

	return newWatchReader(m, omnires.ClusterType, alarm)
}

func TestReceptionOfASnapshot(t *testing.T) {
	failure := errors.New("boom")

	for name, test := range map[string]struct {
		events []state.Event
		ids    []string
		synced bool
		err    error
	}{
		"nothing yet":             {nil, nil, false, nil},
		"some contents":           {[]state.Event{event(state.Created, "a"), event(state.Created, "b")}, []string{"a", "b"}, false, nil},
		"all of it, and no more":  {[]state.Event{event(state.Created, "a"), {Type: state.Bootstrapped}}, []string{"a"}, true, nil},
		"all of it, and a change": {[]state.Event{event(state.Created, "a"), {Type: state.Bootstrapped}, event(state.Destroyed, "a")}, nil, true, nil},
		"gone before the end":     {[]state.Event{event(state.Created, "a"), event(state.Destroyed, "a"), {Type: state.Bootstrapped}}, nil, true, nil},
		"changed before the end":  {[]state.Event{event(state.Created, "a"), event(state.Updated, "a")}, []string{"a"}, false, nil},
		"nothing to do":           {[]state.Event{{Type: state.Noop}}, nil, false, nil},
		"a failure":               {[]state.Event{event(state.Created, "a"), {Type: state.Errored, Error: failure}}, []string{"a"}, false, failure},
		"a failure of nothing":    {[]state.Event{{Type: state.Errored}}, nil, false, bounds.ErrMalformed},
		"no resource":             {[]state.Event{{Type: state.Created}}, nil, false, bounds.ErrMalformed},
		"nothing destroyed":       {[]state.Event{{Type: state.Destroyed}}, nil, false, bounds.ErrMalformed},
		"another type":            {[]state.Event{{Type: state.Created, Resource: omnires.NewMachineSet("a")}}, nil, false, bounds.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			counted := bounds.NewBudget(bounds.Limits{}).Open("team", func(error) {})
			r := newTestReader(t, counted)
			idle, _ := counted.Held()

			var err error
			for i := 0; err == nil && i < len(test.events); i++ {
				err = r.receive(test.events[i])
			}

			if r.synced != test.synced || !errors.Is(err, test.err) {
				t.Errorf("synced %v, error %v", r.synced, err)
			}

			ids := slices.Sorted(maps.Keys(r.firstContents))
			if r.synced {
				ids = slices.Sorted(maps.Keys(r.mirror.store.tables[omnires.ClusterType].byID))
			}

			if diff := cmp.Diff(test.ids, ids); diff != "" {
				t.Error(diff)
			}

			// The account counts exactly the kept resources.
			if count, _ := counted.Held(); count-idle != len(test.ids) {
				t.Errorf("%d are counted", count-idle)
			}

			r.abandon()

			if count, _ := counted.Held(); !r.synced && count != idle {
				t.Errorf("%d are counted in the end", count-idle)
			}
		})
	}
}

// TestReceptionKeepsWhatIsKnown checks that a watch that is opened again takes no memory twice.
func TestReceptionKeepsWhatIsKnown(t *testing.T) {
	counted := bounds.NewBudget(bounds.Limits{}).Open("team", func(error) {})
	first := newTestReader(t, counted)
	contents := []state.Event{event(state.Created, "a"), event(state.Created, "b")}

	for _, event := range append(contents, state.Event{Type: state.Bootstrapped}) {
		if err := first.receive(event); err != nil {
			t.Fatal(err)
		}
	}

	again := newWatchReader(first.mirror, omnires.ClusterType, time.NewTimer(time.Hour))

	for _, known := range contents {
		if err := again.receive(state.Event{Type: state.Created, Resource: known.Resource.DeepCopy()}); err != nil {
			t.Fatal(err)
		}
	}

	if count, _ := counted.Held(); count != 2 {
		t.Errorf("%d are counted", count)
	}

	again.abandon()

	if count, _ := counted.Held(); count != 2 {
		t.Errorf("%d are counted afterwards", count)
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
		var told []string
		if step.gone {
			told, _ = s.remove(step.item.Metadata())
		} else {
			told, _ = s.put(stored{Resource: step.item})
		}

		if !slices.Equal(step.want, told) {
			t.Errorf("%s: told %v", step.name, told)
		}
	}

	if clusters, _ := s.remove(omnires.NewCluster("x").Metadata()); len(clusters) != 0 {
		t.Errorf("told of %v", clusters)
	}
}

func TestHealth(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	start := now
	kinds := []mirroredKind{{omnires.ClusterType, fromID}, {omnires.MachineSetType, fromLabel}}
	keeper := newHealthKeeper(kinds, func() time.Time { return now })
	lost := func(resourceType string, err error) func() bool {
		return func() bool { return keeper.lost(resourceType, err) }
	}
	found := func(resourceType string) func() bool {
		return func() bool { return keeper.found(resourceType) }
	}

	if diff := cmp.Diff(Health{Since: start, Class: omni.ClassNotReady, Message: "reading 2 kinds of resources"}, keeper.get()); diff != "" {
		t.Error(diff)
	}

	for _, step := range []struct {
		name    string
		do      func() bool
		changed bool
		want    Health
	}{
		{"one is there", found(omnires.ClusterType), false, Health{Since: start, Class: omni.ClassNotReady, Message: "reading 1 kinds of resources"}},
		{"one is lost", lost(omnires.MachineSetType, omni.ErrKeyExpired), true, Health{Since: start, Class: omni.ClassKeyExpired, Message: "the watch of MachineSet is lost: " + omni.Message(omni.ErrKeyExpired)}},
		{"all are there", found(omnires.MachineSetType), true, Health{Synced: true, Since: start.Add(3 * time.Minute)}},
		{"a moment later", found(omnires.MachineSetType), false, Health{Synced: true, Since: start.Add(3 * time.Minute)}},
		{"lost", lost(omnires.MachineSetType, omni.ErrClosed), true, Health{Since: start.Add(5 * time.Minute), Outage: start.Add(5 * time.Minute), Class: omni.ClassNotReady, Message: "the watch of MachineSet is lost: " + omni.ErrClosed.Error()}},
		{"another is lost, too", lost(omnires.ClusterType, omni.ErrClosed), false, Health{Since: start.Add(5 * time.Minute), Outage: start.Add(5 * time.Minute), Class: omni.ClassNotReady, Message: "2 watches are lost; Cluster: " + omni.ErrClosed.Error()}},
		{"for another reason", lost(omnires.ClusterType, omni.ErrKeyExpired), true, Health{Since: start.Add(5 * time.Minute), Outage: start.Add(5 * time.Minute), Class: omni.ClassKeyExpired, Message: "2 watches are lost; Cluster: " + omni.Message(omni.ErrKeyExpired)}},
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

// TestGraceOfAnOutage: a watch that is lost again and again right after it was complete is one outage, and is shown. One that
// was complete for long was a restart of Omni.
func TestGraceOfAnOutage(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start
	keeper := newHealthKeeper([]mirroredKind{{omnires.ClusterType, fromID}}, func() time.Time { return now })
	away := status.Error(codes.Unavailable, "connection refused")

	keeper.lost(omnires.ClusterType, away)

	if left := keeper.get().Grace(now); left != 0 {
		t.Errorf("a copy that was never complete has %s", left)
	}

	keeper.found(omnires.ClusterType)
	now = now.Add(time.Hour)
	keeper.lost(omnires.ClusterType, away)

	if left := keeper.get().Grace(now); left != OutageGrace {
		t.Errorf("%s for a copy that was complete for an hour", left)
	}

	for range 20 {
		now = now.Add(time.Second)
		keeper.found(omnires.ClusterType)

		if health := keeper.get(); !health.Outage.IsZero() || health.Grace(now) != 0 {
			t.Errorf("a complete copy is in an outage: %+v", health)
		}

		now = now.Add(time.Second)
		keeper.lost(omnires.ClusterType, away)
	}

	if left := keeper.get().Grace(now); left != 0 {
		t.Errorf("%s for a copy that comes and goes for %s", left, now.Sub(start))
	}

	keeper.found(omnires.ClusterType)
	now = now.Add(OutageGrace)
	keeper.lost(omnires.ClusterType, omni.ErrKeyExpired)

	if left := keeper.get().Grace(now); left != 0 {
		t.Errorf("%s for what a person has to mend", left)
	}
}
