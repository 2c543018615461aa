package omni

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func idsOf(list resource.List) []string {
	ids := []string{}
	for _, item := range list.Items {
		ids = append(ids, item.Metadata().ID())
	}

	return ids
}

func kindMetadata(resourceType resource.Type) resource.Kind {
	return resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)
}

func TestMirrorServesNothingBeforeEveryWatchIsComplete(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	mustCreate(t, source, clusterNamed("demo"))
	source.refuseWatch(omnires.ClusterUUIDType, status.Error(codes.PermissionDenied, "only Reader is allowed"))

	m := StartMirror(t.Context(), source, telling(told))
	defer m.Stop()

	eventually(t, "the refusal shows", func() bool { return m.Health().Class == ClassDenied })

	health := m.Health()
	if health.Synced || m.Synced() || !strings.Contains(health.Message, "ClusterUUID") || health.Since.IsZero() {
		t.Errorf("health %+v", health)
	}

	if _, err := m.State().Get(t.Context(), clusterNamed("demo").Metadata()); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Get: %v", err)
	}

	if _, err := m.State().List(t.Context(), kindMetadata(omnires.ClusterType)); !errors.Is(err, ErrNotSynced) {
		t.Errorf("List: %v", err)
	}

	if err := m.Ready("demo"); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Ready: %v", err)
	}

	if clusters := told.take(); len(clusters) > 0 {
		t.Errorf("told of %v before anybody could read", clusters)
	}

	source.refuseWatch(omnires.ClusterUUIDType, nil)
	eventually(t, "synced", m.Synced)

	if err := m.Ready("demo"); err != nil {
		t.Errorf("Ready: %v", err)
	}

	if _, err := m.State().Get(t.Context(), clusterNamed("demo").Metadata()); err != nil {
		t.Errorf("Get: %v", err)
	}

	if told.healthChanges() == 0 {
		t.Error("nobody was told that the mirror is complete")
	}
}

func TestMirrorReads(t *testing.T) {
	source := newFakeOmni()
	m := startMirror(t, source, MirrorOptions{})

	mustCreate(t, source,
		clusterNamed("a"), clusterNamed("b"),
		setNamed("a", "workers"), setNamed("a", "control-planes"), setNamed("b", "workers"),
		omnires.NewKernelArgs(machine1),
	)
	eventually(t, "everything arrived", func() bool { return m.store.get(omnires.KernelArgsType, machine1) != nil })
	eventually(t, "sets arrived", func() bool { return len(m.store.list(omnires.MachineSetType, nil)) == 3 })

	sets := kindMetadata(omnires.MachineSetType)

	for name, test := range map[string]struct {
		options []state.ListOption
		want    []string
	}{
		"all, sorted":          {nil, []string{"a-control-planes", "a-workers", "b-workers"}},
		"one cluster":          {[]state.ListOption{state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "a"))}, []string{"a-control-planes", "a-workers"}},
		"no such cluster":      {[]state.ListOption{state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "c"))}, []string{}},
		"every other cluster":  {[]state.ListOption{state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "a", resource.NotMatches))}, []string{"b-workers"}},
		"label exists":         {[]state.ListOption{state.WithLabelQuery(resource.LabelExists(omnires.LabelCluster))}, []string{"a-control-planes", "a-workers", "b-workers"}},
		"two alternatives":     {[]state.ListOption{state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "a")), state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "b"))}, []string{"a-control-planes", "a-workers", "b-workers"}},
		"cluster and more":     {[]state.ListOption{state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, "a"), resource.LabelExists("x"))}, []string{}},
		"one of several":       {[]state.ListOption{state.WithLabelQuery(resource.LabelIn(omnires.LabelCluster, []string{"b", "c"}))}, []string{"b-workers"}},
		"unlabelled, inverted": {[]state.ListOption{state.WithLabelQuery(resource.LabelExists(omnires.LabelCluster, resource.NotMatches))}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := m.State().List(t.Context(), sets, test.options...)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, idsOf(list)); diff != "" {
				t.Error(diff)
			}

			direct, err := source.List(t.Context(), sets, test.options...)
			if err != nil {
				t.Fatal(err)
			}

			if len(direct.Items) != len(list.Items) {
				t.Errorf("Omni itself lists %v", idsOf(direct))
			}
		})
	}

	_, err := m.State().Get(t.Context(), clusterNamed("nobody").Metadata())
	if !state.IsNotFoundError(err) {
		t.Errorf("missing: %v", err)
	}

	_, err = m.State().Get(t.Context(), resource.NewMetadata("ephemeral", omnires.ClusterType, "a", resource.VersionUndefined))
	if !state.IsNotFoundError(err) {
		t.Errorf("other namespace: %v", err)
	}

	_, err = m.State().Get(t.Context(), omnires.NewMachineClass("x").Metadata())
	if !state.IsUnsupportedError(err) || state.IsNotFoundError(err) {
		t.Errorf("a type that is not mirrored: %v", err)
	}
}

func TestMirrorIsReadOnly(t *testing.T) {
	source := newFakeOmni()
	mustCreate(t, source, clusterNamed("a"))

	m := startMirror(t, source, MirrorOptions{})
	copied := m.State()

	got, err := safe.StateGetByID[*omnires.Cluster](t.Context(), copied, "a")
	if err != nil {
		t.Fatal(err)
	}

	got.TypedSpec().Value.TalosVersion = "9.9.9"
	got.Metadata().Labels().Set("x", "y")

	again, err := safe.StateGetByID[*omnires.Cluster](t.Context(), copied, "a")
	if err != nil {
		t.Fatal(err)
	}

	if _, set := again.Metadata().Labels().Get("x"); set || again.TypedSpec().Value.TalosVersion != "1.13.2" {
		t.Error("a reader changed the copy")
	}

	events := make(chan state.Event)

	_, tearDown := copied.Teardown(t.Context(), got.Metadata())

	for name, err := range map[string]error{
		"create":   copied.Create(t.Context(), clusterNamed("b")),
		"update":   copied.Update(t.Context(), got),
		"destroy":  copied.Destroy(t.Context(), got.Metadata()),
		"teardown": tearDown,
		"watch":    copied.Watch(t.Context(), got.Metadata(), events),
		"kind":     copied.WatchKind(t.Context(), got.Metadata(), events),
		"batches":  copied.WatchKindAggregated(t.Context(), got.Metadata(), make(chan []state.Event)),
	} {
		if !errors.Is(err, ErrReadOnly) || !state.IsUnsupportedError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMirrorTellsWhichCluster(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	m := startMirror(t, source, telling(told))

	node := labelled(omnires.NewMachineSetNode(machine1, setNamed("a", "workers")), "a")
	machine := omnires.NewMachineStatus(machine2)
	args := omnires.NewKernelArgs(machine1)
	orphan := omnires.NewKernelArgs(machine3)

	// Every step changes one resource and says who must hear of it.
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"a cluster by its ID", func() { mustCreate(t, source, clusterNamed("a")) }, []string{"a"}},
		{"a status by its ID", func() { mustCreate(t, source, omnires.NewClusterStatus("a")) }, []string{"a"}},
		{"a UUID by its ID", func() { mustCreate(t, source, omnires.NewClusterUUID("a")) }, []string{"a"}},
		{"a patch by its label", func() { mustCreate(t, source, labelled(omnires.NewConfigPatch("p"), "b")) }, []string{"b"}},
		{"a patch of nobody", func() { mustCreate(t, source, omnires.NewConfigPatch("q")) }, nil},
		{"a free machine", func() { mustCreate(t, source, machine) }, nil},
		{"its spec names a cluster", func() {
			mustChange(t, source, machine, func(m *omnires.MachineStatus) { m.TypedSpec().Value.Cluster = "a" })
		}, []string{"a"}},
		{"its label names another", func() {
			mustChange(t, source, machine, func(m *omnires.MachineStatus) { labelled(m, "b") })
		}, []string{"a", "b"}},
		{"it leaves", func() {
			mustChange(t, source, machine, func(m *omnires.MachineStatus) {
				m.Metadata().Labels().Delete(omnires.LabelCluster)
				m.TypedSpec().Value.Cluster = ""
			})
		}, []string{"b"}},
		{"kernel arguments of an unknown machine", func() { mustCreate(t, source, orphan) }, nil},
		{"a machine joins", func() { mustCreate(t, source, node) }, []string{"a"}},
		{"kernel arguments through the machine", func() { mustCreate(t, source, args) }, []string{"a"}},
		{"a destroyed cluster", func() { mustDestroy(t, source, clusterNamed("a")) }, []string{"a"}},
	} {
		step.change()

		marker := omnires.NewClusterStatus("marker-" + strings.ReplaceAll(step.name, " ", "-"))
		// The tables are independent, so give each step's own event its time.
		for _, want := range step.want {
			eventually(t, step.name+" tells "+want, func() bool { return told.told(want) })
		}

		mustCreate(t, source, marker)
		eventually(t, "marker", func() bool { return told.told(marker.Metadata().ID()) })

		var got []string

		for _, cluster := range told.take() {
			if !strings.HasPrefix(cluster, "marker-") {
				got = append(got, cluster)
			}
		}

		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}

	_ = m
}

func TestMirrorResynchronises(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	mustCreate(t, source, clusterNamed("kept"), clusterNamed("changed"), clusterNamed("removed"), clusterNamed("remade"))

	m := startMirror(t, source, telling(told))
	before := m.Health().Since

	lost := status.Error(codes.Unavailable, "error reading from server: EOF")
	for _, kind := range mirroredKinds() {
		source.refuseWatch(kind.resourceType, lost)
	}

	source.loseWatches(lost)
	eventually(t, "the loss shows", func() bool { return !m.Synced() })
	eventually(t, "all watches lost", func() bool { return strings.Contains(m.Health().Message, "17 watches") })

	health := m.Health()
	if health.Class != ClassUnreachable || !health.Since.After(before) {
		t.Errorf("health %+v", health)
	}

	if err := m.Ready("kept"); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Ready while lost: %v", err)
	}

	if _, err := m.State().Get(t.Context(), clusterNamed("kept").Metadata()); err != nil {
		t.Errorf("a read while lost: %v", err)
	}

	// What happens meanwhile.
	mustChange(t, source, clusterNamed("changed"), func(c *omnires.Cluster) { c.TypedSpec().Value.TalosVersion = "1.13.3" })
	mustDestroy(t, source, clusterNamed("removed"))
	mustDestroy(t, source, clusterNamed("remade"))
	time.Sleep(2 * time.Millisecond)
	mustCreate(t, source, clusterNamed("remade"), clusterNamed("new"))
	told.take()

	for _, kind := range mirroredKinds() {
		source.refuseWatch(kind.resourceType, nil)
	}

	eventually(t, "synced again", m.Synced)
	eventually(t, "differences told", func() bool {
		return told.told("changed") && told.told("removed") && told.told("new") && told.told("remade")
	})

	if told.told("kept") {
		t.Error("told of a cluster that did not change")
	}

	got, err := safe.StateGetByID[*omnires.Cluster](t.Context(), m.State(), "changed")
	if err != nil || got.TypedSpec().Value.TalosVersion != "1.13.3" {
		t.Errorf("changed: %v, %v", got, err)
	}

	if _, err = m.State().Get(t.Context(), clusterNamed("removed").Metadata()); !state.IsNotFoundError(err) {
		t.Errorf("removed: %v", err)
	}

	if !m.Health().Since.After(health.Since) || m.Health().Message != "" {
		t.Errorf("health %+v", m.Health())
	}
}

func TestMirrorGivesUpASilentBootstrap(t *testing.T) {
	told := &recorded{}
	options := telling(told)
	options.BootstrapTimeout = 20 * time.Millisecond

	m := StartMirror(t.Context(), &silentOmni{State: newFakeOmni()}, options)
	defer m.Stop()

	eventually(t, "the timeout shows", func() bool { return m.Health().Class == ClassUnreachable })

	if !strings.Contains(m.Health().Message, "did not arrive in time") {
		t.Errorf("health %+v", m.Health())
	}
}

func TestMirrorStopsAtOnce(t *testing.T) {
	for name, source := range map[string]state.CoreState{"watching": newFakeOmni(), "bootstrapping": &silentOmni{State: newFakeOmni()}} {
		m := StartMirror(t.Context(), source, MirrorOptions{})
		started := time.Now()
		m.Stop()

		// Whoever waits for the first contents waits for BootstrapTimeout.
		if took := time.Since(started); took > BootstrapTimeout/2 {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestMirrorUnderLoad(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	m := startMirror(t, source, telling(told))

	var group sync.WaitGroup

	for worker := range 4 {
		group.Go(func() {
			for i := range 50 {
				cluster := fmt.Sprintf("c-%d-%d", worker, i)
				mustCreate(t, source, clusterNamed(cluster), setNamed(cluster, "workers"))

				if i%2 == 0 {
					mustDestroy(t, source, setNamed(cluster, "workers"))
				}
			}
		})
		group.Go(func() {
			for range 100 {
				_, _ = m.State().List(t.Context(), kindMetadata(omnires.MachineSetType))
				_ = m.Ready("c-0-0")
			}
		})
	}

	group.Wait()
	eventually(t, "the copy equals Omni", func() bool {
		return len(m.store.list(omnires.ClusterType, nil)) == 200 && len(m.store.list(omnires.MachineSetType, nil)) == 100
	})

	if left := len(m.store.tables[omnires.MachineSetType].byCluster); left != 100 {
		t.Errorf("the index keeps %d clusters", left)
	}
}
