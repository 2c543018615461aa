package mirror

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

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
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
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("demo"))
	source.RefuseWatch(omnires.ClusterUUIDType, status.Error(codes.PermissionDenied, "only Reader is allowed"))

	m := Start(t.Context(), source, telling(told))
	defer m.Stop()

	await.Until(t, "the refusal shows", func() bool { return m.Health().Class == omni.ClassDenied })

	health := m.Health()
	if health.Synced || m.Synced() || !strings.Contains(health.Message, "ClusterUUID") || health.Since.IsZero() {
		t.Errorf("health %+v", health)
	}

	if _, err := m.State().Get(t.Context(), omnitest.ClusterNamed("demo").Metadata()); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("Get: %v", err)
	}

	if _, err := m.State().List(t.Context(), kindMetadata(omnires.ClusterType)); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("List: %v", err)
	}

	if err := m.Ready("demo"); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("Ready: %v", err)
	}

	if clusters := told.Take(); len(clusters) > 0 {
		t.Errorf("told of %v before anybody could read", clusters)
	}

	source.RefuseWatch(omnires.ClusterUUIDType, nil)
	await.Until(t, "synced", m.Synced)

	if err := m.Ready("demo"); err != nil {
		t.Errorf("Ready: %v", err)
	}

	if _, err := m.State().Get(t.Context(), omnitest.ClusterNamed("demo").Metadata()); err != nil {
		t.Errorf("Get: %v", err)
	}

	if told.HealthChanges() == 0 {
		t.Error("nobody was told that the mirror is complete")
	}
}

func TestMirrorReads(t *testing.T) {
	source := omnitest.NewFakeOmni()
	m := startMirror(t, source, Options{})

	omnitest.MustCreate(t, source,
		omnitest.ClusterNamed("a"), omnitest.ClusterNamed("b"),
		omnitest.SetNamed("a", "workers"), omnitest.SetNamed("a", "control-planes"), omnitest.SetNamed("b", "workers"),
		omnires.NewKernelArgs(omnitest.Machine1),
	)
	await.Until(t, "everything arrived", func() bool { return m.store.get(omnires.KernelArgsType, omnitest.Machine1) != nil })
	await.Until(t, "sets arrived", func() bool { return len(m.store.list(omnires.MachineSetType, nil)) == 3 })

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

	_, err := m.State().Get(t.Context(), omnitest.ClusterNamed("nobody").Metadata())
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
	source := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("a"))

	m := startMirror(t, source, Options{})
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
		"create":   copied.Create(t.Context(), omnitest.ClusterNamed("b")),
		"update":   copied.Update(t.Context(), got),
		"destroy":  copied.Destroy(t.Context(), got.Metadata()),
		"teardown": tearDown,
		"watch":    copied.Watch(t.Context(), got.Metadata(), events),
		"kind":     copied.WatchKind(t.Context(), got.Metadata(), events),
		"batches":  copied.WatchKindAggregated(t.Context(), got.Metadata(), make(chan []state.Event)),
	} {
		if !errors.Is(err, omni.ErrReadOnly) || !state.IsUnsupportedError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMirrorTellsWhichCluster(t *testing.T) {
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	m := startMirror(t, source, telling(told))

	node := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine1, omnitest.SetNamed("a", "workers")), "a")
	machine := omnires.NewMachineStatus(omnitest.Machine2)
	args := omnires.NewKernelArgs(omnitest.Machine1)
	orphan := omnires.NewKernelArgs(omnitest.Machine3)
	request := omnitest.Labelled(omnires.NewClusterMachineRequestStatus("b-workers-abc"), "b")
	connecting := omnires.NewMachineStatus(omnitest.Machine1) // listed by a set, and without a cluster yet

	// Every step changes one resource and lists the clusters that must be reported.
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"a cluster by its ID", func() { omnitest.MustCreate(t, source, omnitest.ClusterNamed("a")) }, []string{"a"}},
		{"a status by its ID", func() { omnitest.MustCreate(t, source, omnires.NewClusterStatus("a")) }, []string{"a"}},
		{"a UUID by its ID", func() { omnitest.MustCreate(t, source, omnires.NewClusterUUID("a")) }, []string{"a"}},
		{"the status of its manifests by its ID", func() { omnitest.MustCreate(t, source, omnires.NewClusterKubernetesManifestsStatus("a")) }, []string{"a"}},
		{"a request for a machine by its label", func() { omnitest.MustCreate(t, source, request) }, []string{"b"}},
		{"its machine joins the cluster", func() {
			omnitest.MustChange(t, source, request, func(r *omnires.ClusterMachineRequestStatus) {
				r.Metadata().Labels().Set(omnires.LabelMachineRequestInUse, "")
			})
		}, []string{"b"}},
		{"a request whose machine is in the cluster", func() {
			omnitest.MustChange(t, source, request, func(r *omnires.ClusterMachineRequestStatus) { r.TypedSpec().Value.MachineUuid = omnitest.Machine2 })
		}, nil},
		{"a patch by its label", func() { omnitest.MustCreate(t, source, omnitest.Labelled(omnires.NewConfigPatch("p"), "b")) }, []string{"b"}},
		{"a patch of nobody", func() { omnitest.MustCreate(t, source, omnires.NewConfigPatch("q")) }, nil},
		{"a free machine", func() { omnitest.MustCreate(t, source, machine) }, nil},
		{"its spec names a cluster", func() {
			omnitest.MustChange(t, source, machine, func(m *omnires.MachineStatus) { m.TypedSpec().Value.Cluster = "a" })
		}, []string{"a"}},
		{"its label names another", func() {
			omnitest.MustChange(t, source, machine, func(m *omnires.MachineStatus) { omnitest.Labelled(m, "b") })
		}, []string{"a", "b"}},
		{"it leaves", func() {
			omnitest.MustChange(t, source, machine, func(m *omnires.MachineStatus) {
				m.Metadata().Labels().Delete(omnires.LabelCluster)
				m.TypedSpec().Value.Cluster = ""
			})
		}, []string{"b"}},
		{"kernel arguments of an unknown machine", func() { omnitest.MustCreate(t, source, orphan) }, nil},
		{"a machine joins", func() { omnitest.MustCreate(t, source, node) }, []string{"a"}},
		{"kernel arguments through the machine", func() { omnitest.MustCreate(t, source, args) }, []string{"a"}},
		{"a machine of a set, when it connects", func() { omnitest.MustCreate(t, source, connecting) }, []string{"a"}},
		{"again, before Omni has labelled it", func() {
			omnitest.MustChange(t, source, connecting, func(m *omnires.MachineStatus) { m.TypedSpec().Value.Connected = true })
		}, []string{"a"}},
		{"a destroyed cluster", func() { omnitest.MustDestroy(t, source, omnitest.ClusterNamed("a")) }, []string{"a"}},
	} {
		step.change()

		marker := omnires.NewClusterStatus("marker-" + strings.ReplaceAll(step.name, " ", "-"))
		// The tables are independent, so wait for each step's own event.
		for _, want := range step.want {
			await.Until(t, step.name+" tells "+want, func() bool { return told.Told(want) })
		}

		omnitest.MustCreate(t, source, marker)
		await.Until(t, "marker", func() bool { return told.Told(marker.Metadata().ID()) })

		var got []string

		for _, cluster := range told.Take() {
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
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("kept"), omnitest.ClusterNamed("changed"), omnitest.ClusterNamed("removed"), omnitest.ClusterNamed("remade"))

	m := startMirror(t, source, telling(told))
	before := m.Health().Since

	lost := status.Error(codes.Unavailable, "error reading from server: EOF")
	for _, kind := range mirroredKinds() {
		source.RefuseWatch(kind.resourceType, lost)
	}

	source.LoseWatches(lost)
	await.Until(t, "the loss shows", func() bool { return !m.Synced() })
	await.Until(t, "all watches lost", func() bool { return strings.Contains(m.Health().Message, "22 watches") })

	health := m.Health()
	if health.Class != omni.ClassUnreachable || !health.Since.After(before) {
		t.Errorf("health %+v", health)
	}

	if err := m.Ready("kept"); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("Ready while lost: %v", err)
	}

	if _, err := m.State().Get(t.Context(), omnitest.ClusterNamed("kept").Metadata()); err != nil {
		t.Errorf("a read while lost: %v", err)
	}

	// Changes while the watch is lost.
	omnitest.MustChange(t, source, omnitest.ClusterNamed("changed"), func(c *omnires.Cluster) { c.TypedSpec().Value.TalosVersion = "1.13.3" })
	omnitest.MustDestroy(t, source, omnitest.ClusterNamed("removed"))
	omnitest.MustDestroy(t, source, omnitest.ClusterNamed("remade"))
	time.Sleep(2 * time.Millisecond)
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("remade"), omnitest.ClusterNamed("new"))
	told.Take()

	for _, kind := range mirroredKinds() {
		source.RefuseWatch(kind.resourceType, nil)
	}

	await.Until(t, "synced again", m.Synced)
	await.Until(t, "differences told", func() bool {
		return told.Told("changed") && told.Told("removed") && told.Told("new") && told.Told("remade")
	})

	if told.Told("kept") {
		t.Error("told of a cluster that did not change")
	}

	got, err := safe.StateGetByID[*omnires.Cluster](t.Context(), m.State(), "changed")
	if err != nil || got.TypedSpec().Value.TalosVersion != "1.13.3" {
		t.Errorf("changed: %v, %v", got, err)
	}

	if _, err = m.State().Get(t.Context(), omnitest.ClusterNamed("removed").Metadata()); !state.IsNotFoundError(err) {
		t.Errorf("removed: %v", err)
	}

	if !m.Health().Since.After(health.Since) || m.Health().Message != "" {
		t.Errorf("health %+v", m.Health())
	}
}

func TestMirrorGivesUpASilentBootstrap(t *testing.T) {
	told := &omnitest.Recorded{}
	options := telling(told)
	options.BootstrapTimeout = 20 * time.Millisecond

	m := Start(t.Context(), &omnitest.SilentOmni{State: omnitest.NewFakeOmni()}, options)
	defer m.Stop()

	await.Until(t, "the timeout shows", func() bool { return m.Health().Class == omni.ClassUnreachable })

	if !strings.Contains(m.Health().Message, "did not arrive in time") {
		t.Errorf("health %+v", m.Health())
	}
}

func TestMirrorStopsAtOnce(t *testing.T) {
	for name, source := range map[string]state.CoreState{"watching": omnitest.NewFakeOmni(), "bootstrapping": &omnitest.SilentOmni{State: omnitest.NewFakeOmni()}} {
		t.Run(name, func(t *testing.T) {
			// A watch that waits for its first contents waits up to BootstrapTimeout.
			m := Start(t.Context(), source, Options{BootstrapTimeout: time.Hour})
			stopped := make(chan struct{})

			go func() {
				m.Stop()
				close(stopped)
			}()

			await.Receive(t, "the stop", stopped)
		})
	}
}

func TestMirrorUnderLoad(t *testing.T) {
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	m := startMirror(t, source, telling(told))

	var group sync.WaitGroup

	for worker := range 4 {
		group.Go(func() {
			for i := range 50 {
				cluster := fmt.Sprintf("c-%d-%d", worker, i)
				omnitest.MustCreate(t, source, omnitest.ClusterNamed(cluster), omnitest.SetNamed(cluster, "workers"))

				if i%2 == 0 {
					omnitest.MustDestroy(t, source, omnitest.SetNamed(cluster, "workers"))
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
	await.Until(t, "the copy equals Omni", func() bool {
		return len(m.store.list(omnires.ClusterType, nil)) == 200 && len(m.store.list(omnires.MachineSetType, nil)) == 100
	})

	if left := len(m.store.tables[omnires.MachineSetType].byCluster); left != 100 {
		t.Errorf("the index keeps %d clusters", left)
	}
}
