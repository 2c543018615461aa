package session

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protowire"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// tellOf returns the created event of an invented resource.
func tellOf(sent *v1alpha1.Resource) *v1alpha1.WatchResponse {
	return &v1alpha1.WatchResponse{Event: []*v1alpha1.Event{{EventType: v1alpha1.EventType_CREATED, Resource: sent}}}
}

// big returns an event of an invented resource of about 10 KiB.
func big(resourceType string, number int) *v1alpha1.WatchResponse {
	sent := omnitest.Invented(resourceType, number)
	sent.Metadata.Labels["text"] = strings.Repeat("x", 10<<10)

	return tellOf(sent)
}

// heapPeak starts a measurement; the returned function returns the peak of the additional memory in use since then, in
// bytes. Garbage counts, and is collected as it is in omni-controller, or less often: whatever GOGC is here.
func heapPeak(t *testing.T) func() uint64 {
	t.Helper()

	percent := debug.SetGCPercent(100)

	inUse := func() uint64 {
		var stats runtime.MemStats

		runtime.ReadMemStats(&stats)

		return stats.HeapInuse
	}

	runtime.GC()

	before, done, stopped := inUse(), make(chan struct{}), make(chan struct{})

	var peak atomic.Uint64

	go func() {
		defer close(stopped)

		for {
			peak.Store(max(peak.Load(), inUse()))

			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()

	return func() uint64 {
		close(done)
		<-stopped
		debug.SetGCPercent(percent)

		return peak.Load() - min(before, peak.Load())
	}
}

// crowd is a pool of connections, each to an Omni of its own.
type crowd struct {
	t    *testing.T
	pool *Pool
}

func newCrowd(t *testing.T, limits bounds.Limits) *crowd {
	t.Helper()

	pool := NewPool(t.Context(), PoolOptions{
		Limits: limits, TooMuchDataPause: time.Hour,
		Mirror: mirror.Options{ResyncMinDelay: 5 * time.Millisecond, ResyncMaxDelay: 10 * time.Millisecond, BootstrapTimeout: 10 * time.Minute},
	})
	t.Cleanup(pool.Close)

	return &crowd{t: t, pool: pool}
}

// join connects to an Omni.
func (c *crowd) join(owner, name string, server *omnisim.Server) (*Lease, func() error) {
	c.t.Helper()

	_, key := newAccount(c.t, server, "operator-"+name, omnisim.RoleOperator, time.Hour)
	config := Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key}
	again := func() error {
		lease, err := c.pool.Acquire(c.t.Context(), Identity{UID: name, Owner: owner, SecretUID: "1"}, config)
		if err == nil {
			lease.Release()
		}

		return err
	}

	lease, err := c.pool.Acquire(c.t.Context(), Identity{UID: name, Owner: owner, SecretUID: "1"}, config)
	if err != nil {
		return nil, again
	}

	return lease, again
}

// TestFloodEndsTheSession checks that a session whose Omni sends resources without end is closed, and stays closed;
// other sessions are not affected.
func TestFloodEndsTheSession(t *testing.T) {
	bound := foreigntest.Load(40 << 20) // a tenth of it holds what each connection takes for its watches

	for name, test := range map[string]struct {
		limits bounds.Limits
		next   func(int) *v1alpha1.WatchResponse
		says   string
	}{
		"in bytes": {bounds.Limits{Memory: int64(bound)}, func(number int) *v1alpha1.WatchResponse {
			if number > 40_000 { // 400 MiB: enough to fail, not enough to harm
				return nil
			}

			return big(omnires.ClusterType, number)
		}, "--omni-max-memory"},
		"in number": {bounds.Limits{Resources: foreigntest.Load(5000), Memory: 24 << 20}, func(number int) *v1alpha1.WatchResponse {
			if number > 100_000 {
				return nil
			}

			return tellOf(omnitest.Invented(omnires.ClusterType, number))
		}, "--omni-max-resources"},
	} {
		t.Run(name, func(t *testing.T) {
			healthy, hostile := startOmni(t, omnisim.Options{}), startOmni(t, omnisim.Options{})
			c := newCrowd(t, test.limits)

			neighbour, _ := c.join("team-a", "healthy", healthy)
			defer neighbour.Release()

			await.Until(t, "the neighbour is synced", func() bool { return neighbour.Health().Synced })
			since := neighbour.Health().Since

			peak := heapPeak(t)
			remove := hostile.Flood(omnires.ClusterType, test.next)
			defer remove()

			lease, again := c.join("team-b", "hostile", hostile)
			if lease != nil {
				lease.Release()
			}

			await.Until(t, "the session is closed", func() bool { return errors.Is(again(), omni.ErrTooMuchData) })

			err := again()
			if omni.Classify(err) != omni.ClassTooMuchData || !strings.Contains(omni.Message(err), test.says) {
				t.Errorf("error %v", err)
			}

			if got := peak(); got > uint64(bound)+64<<20 {
				t.Errorf("%d MiB were in use", got>>20)
			}

			// The pool sends nothing more, except a watch that may still have been on its way to the server.
			hostile.GoDown()
			hostile.ForgetRequests()

			if err := hostile.ComeBack(); err != nil {
				t.Fatal(err)
			}

			for range 3 {
				_ = again()
			}

			if requests := hostile.Requests(); len(requests) != 0 {
				t.Errorf("requests %v", requests)
			}

			if health := neighbour.Health(); !health.Synced || !health.Since.Equal(since) {
				t.Errorf("the neighbour noticed: %+v", health)
			}
		})
	}
}

// TestFloodsDoNotAddUp checks that many hostile sessions of one namespace are bounded together, and end no session of
// another namespace.
func TestFloodsDoNotAddUp(t *testing.T) {
	const each, all = 24 << 20, 48 << 20

	c := newCrowd(t, bounds.Limits{Memory: each, TotalMemory: all})
	healthy := startOmni(t, omnisim.Options{})

	neighbour, _ := c.join("team-a", "healthy", healthy)
	defer neighbour.Release()

	await.Until(t, "the neighbour is synced", func() bool { return neighbour.Health().Synced })

	since := neighbour.Health().Since
	peak := heapPeak(t)

	hostile := startOmni(t, omnisim.Options{})
	remove := hostile.Flood(omnires.ClusterType, func(number int) *v1alpha1.WatchResponse {
		if number > 1000 { // each stays below its own bound
			return nil
		}

		return big(omnires.ClusterType, number)
	})
	defer remove()

	var attempts []func() error

	for number := range 6 {
		lease, again := c.join("team-b", fmt.Sprintf("hostile-%d", number), hostile)
		attempts = append(attempts, again)

		if lease != nil {
			await.Until(t, "synced or closed", func() bool { return lease.Health().Synced || lease.Health().Class == omni.ClassTooMuchData })
			lease.Release()
		}
	}

	await.Until(t, "most sessions are closed", func() bool {
		closed := 0

		for _, again := range attempts {
			if err := again(); errors.Is(err, omni.ErrTooMuchData) && strings.Contains(err.Error(), "--omni-max-total-memory") {
				closed++
			}
		}

		return closed >= 3
	})

	if got := peak(); got > all+64<<20 {
		t.Errorf("%d MiB were in use", got>>20)
	}

	if health := neighbour.Health(); !health.Synced || !health.Since.Equal(since) {
		t.Errorf("the neighbour noticed: %+v", health)
	}
}

// TestLongResourceIsRead checks that a resource that exceeds the first limit of a watch arrives a moment later.
func TestLongResourceIsRead(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	remove := server.Flood(omnires.ClusterType, func(number int) *v1alpha1.WatchResponse {
		if number > 0 {
			return nil
		}

		sent := omnitest.Invented(omnires.ClusterType, number)
		sent.Metadata.Annotations = map[string]string{"text": strings.Repeat("x", 1<<20)}

		return tellOf(sent)
	})
	defer remove()

	lease, _ := newCrowd(t, bounds.Limits{}).join("team", "long", server)
	defer lease.Release()

	await.Until(t, "synced", func() bool { return lease.Health().Synced })

	if _, err := lease.Copy().Get(t.Context(), omnires.NewCluster("invented-0").Metadata()); err != nil {
		t.Error("the resource is missing")
	}
}

// TestBombsAreNotDecoded checks that one answer that weighs far more than its length is not decoded.
func TestBombsAreNotDecoded(t *testing.T) {
	const claims = "a compressed text that claims to be long"

	emptyElements := func(field protowire.Number, count int) []byte {
		return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil), count)
	}

	for name, test := range map[string]struct {
		resourceType string
		change       func(*v1alpha1.Resource)
	}{
		"labels": {omnires.ClusterType, func(sent *v1alpha1.Resource) {
			for number := range 60_000 {
				sent.Metadata.Labels[fmt.Sprint(number)] = ""
			}
		}},
		"finalizers": {omnires.ClusterType, func(sent *v1alpha1.Resource) {
			sent.Metadata.Finalizers = make([]string, 2<<20)
		}},
		"too long": {omnires.ClusterType, func(sent *v1alpha1.Resource) {
			sent.Metadata.Annotations = map[string]string{"text": strings.Repeat("x", 9<<20)}
		}},
		"empty elements": {omnires.MachineStatusType, func(sent *v1alpha1.Resource) {
			sent.Spec.ProtoSpec = emptyElements(19, 1<<20) // diagnostics
		}},
		"empty elements further in": {omnires.MachineStatusType, func(sent *v1alpha1.Resource) {
			// network (3): network_links (5)
			inner := emptyElements(5, 2<<20)
			sent.Spec.ProtoSpec = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inner)
		}},
		claims: {omnires.ConfigPatchType, func(sent *v1alpha1.Resource) {
			sent.Spec.ProtoSpec = compressed(omnitest.Claiming(1 << 40))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != claims { // which ends the session as the others do
				foreigntest.Sequential(t)
			}

			server := startOmni(t, omnisim.Options{})

			bomb := omnitest.Invented(test.resourceType, 0)
			test.change(bomb)

			remove := server.Flood(test.resourceType, func(number int) *v1alpha1.WatchResponse {
				if number > 0 {
					return nil
				}

				return tellOf(bomb)
			})
			defer remove()

			peak := heapPeak(t)
			lease, again := newCrowd(t, bounds.Limits{}).join("team", "bomb", server)

			if lease != nil {
				lease.Release()
			}

			await.Until(t, "the session is closed", func() bool { return errors.Is(again(), omni.ErrTooMuchData) })

			// The simulator encodes the bomb in the same process, each time the watch is opened again.
			if got := peak(); got > 160<<20 {
				t.Errorf("%d MiB were in use", got>>20)
			}
		})
	}
}

// compressed returns the spec of a patch with a compressed text.
func compressed(text []byte) []byte {
	field := (&specs.ConfigPatchSpec{}).ProtoReflect().Descriptor().Fields().ByName("compressed_data").Number()

	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), text)
}
