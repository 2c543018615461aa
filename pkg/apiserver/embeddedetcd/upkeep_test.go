package embeddedetcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

const (
	mib   = 1 << 20
	quota = 20 * mib
)

// tended is an etcd with a keeper that is not running.
type tended struct {
	t        *testing.T
	dir      string
	server   *embeddedetcd.Server
	client   *clientv3.Client
	keeper   *embeddedetcd.Keeper
	registry metrics.KubeRegistry
}

func tend(t *testing.T, dir string, limit int64, interval time.Duration) *tended {
	t.Helper()

	server, err := embeddedetcd.Start(t.Context(), dir, embeddedetcd.Quota(limit))
	if err != nil {
		t.Fatal(err)
	}

	client, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}

	writer, err := server.InProcessClient() // the API's, which adds remedies
	if err != nil {
		t.Fatal(err)
	}

	registry := metrics.NewKubeRegistry()

	made, err := embeddedetcd.NewUpkeepMetrics(registry.Register)
	if err != nil {
		t.Fatal(err)
	}

	e := &tended{t: t, dir: dir, server: server, client: writer, registry: registry, keeper: &embeddedetcd.Keeper{
		Client: client, DataDir: dir, Quota: limit, DefragmentInterval: interval, Metrics: made,
	}}
	t.Cleanup(e.stop)

	return e
}

func (e *tended) stop() {
	e.t.Helper()

	e.client.Close()

	if err := e.server.Stop(); err != nil {
		e.t.Error(err)
	}
}

func (e *tended) look() {
	e.t.Helper()

	if err := e.keeper.Look(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

// lookUntil calls Look repeatedly, as Run does: etcd frees pages only when no reader may need them.
func (e *tended) lookUntil(what string, done func() bool) {
	e.t.Helper()

	for deadline := time.Now().Add(await.Limit); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			e.t.Fatalf("no %s; the file has %v bytes, %v in use", what, e.metric("omni_apiserver_etcd_db_size_bytes", ""),
				e.metric("omni_apiserver_etcd_db_in_use_bytes", ""))
		}

		e.look()
	}
}

// writable reports whether no alarm was seen.
func (e *tended) writable() bool { return e.metric("omni_apiserver_etcd_alarm", "NOSPACE") == 0 }

// fill writes keys of 1 MiB until etcd refuses, and returns their number and the refusal. It is slow on purpose: etcd
// checks the quota against committed data, which it counts every 100 ms, and accepts every write in between.
func (e *tended) fill(most int) (int, error) {
	e.t.Helper()

	for i := range most {
		if _, err := e.client.Put(e.t.Context(), fmt.Sprintf("key-%03d", i), strings.Repeat("x", mib)); err != nil {
			return i, err
		}

		time.Sleep(10 * time.Millisecond)
	}

	return most, nil
}

func (e *tended) metric(name, label string) float64 {
	e.t.Helper()

	families, err := e.registry.Gather()
	if err != nil {
		e.t.Fatal(err)
	}

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}

	return -1
}

// TestFullOfGarbage: room comes back by itself.
func TestFullOfGarbage(t *testing.T) {
	e := tend(t, t.TempDir(), quota, time.Hour)

	var err error
	for err == nil { // the same key again and again
		_, err = e.fill(1)
	}

	if !strings.Contains(err.Error(), "database space exceeded") || !strings.Contains(err.Error(), "--etcd-quota-backend-bytes") {
		t.Errorf("refusal: %v", err)
	}

	e.lookUntil("room", e.writable)

	if _, err := e.fill(1); err != nil {
		t.Error(err)
	}

	if got := e.metric("omni_apiserver_etcd_db_size_bytes", ""); got > quota/2 {
		t.Errorf("the file has %v bytes", got)
	}

	if got := e.metric("omni_apiserver_etcd_alarm", "NOSPACE"); got != 0 || e.keeper.Notice() != "" {
		t.Errorf("alarm %v, notice %q", got, e.keeper.Notice())
	}

	if got := e.metric("omni_apiserver_etcd_defragmentations_total", "success"); got != 1 {
		t.Errorf("%v defragmentations", got)
	}
}

// fillUp writes smaller keys until no room can be made any more. The database file is full long before its content
// is: the file also has pages that were just replaced.
func (e *tended) fillUp() {
	e.t.Helper()

	e.look()

	for i := 0; e.writable(); i++ {
		if i > 4*quota/mib {
			e.t.Fatal("etcd takes everything")
		}

		if _, err := e.client.Put(e.t.Context(), fmt.Sprintf("small-%03d", i), strings.Repeat("x", mib/4)); err != nil {
			e.look()
		}
	}
}

// TestFullOfObjects: deleting is the way out, or a higher quota.
func TestFullOfObjects(t *testing.T) {
	e := tend(t, t.TempDir(), quota, 0)

	written, err := e.fill(2 * quota / mib)
	if err == nil {
		t.Fatal("etcd takes everything")
	}

	e.fillUp()

	if got := e.keeper.Notice(); !strings.HasPrefix(got, "every write is refused: ") {
		t.Errorf("notice %q", got)
	}

	if got := e.metric("omni_apiserver_etcd_alarm", "NOSPACE"); got != 1 {
		t.Errorf("alarm %v", got)
	}

	if _, err := e.fill(1); err == nil {
		t.Error("a write although the database is full")
	}

	if got, err := e.client.Get(t.Context(), "key-000"); err != nil || got.Count != 1 {
		t.Errorf("read: %v, %v", got, err)
	}

	// How far etcd went beyond its quota is not certain; half of the first keys are left.
	if _, err := e.client.Delete(t.Context(), "small-", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}

	for i := range written / 2 {
		if _, err := e.client.Delete(t.Context(), fmt.Sprintf("key-%03d", i)); err != nil {
			t.Fatal(err)
		}
	}

	e.lookUntil("room", e.writable)

	if _, err := e.fill(1); err != nil || e.keeper.Notice() != "" {
		t.Errorf("after deletions: %v, notice %q", err, e.keeper.Notice())
	}
}

func TestHigherQuota(t *testing.T) {
	dir := t.TempDir()
	full := tend(t, dir, quota, 0)

	if _, err := full.fill(2 * quota / mib); err == nil {
		t.Fatal("etcd takes everything")
	}

	full.stop()

	e := tend(t, dir, 2*quota, 0)

	// etcd remembers the alarm.
	if _, err := e.fill(1); err == nil {
		t.Error("a write before the alarm was taken back")
	}

	e.look()

	if _, err := e.fill(1); err != nil {
		t.Error(err)
	}
}

// TestDefragmentation: free space goes back when there is much of it, without any alarm.
func TestDefragmentation(t *testing.T) {
	e := tend(t, t.TempDir(), 1024*mib, time.Nanosecond)

	if _, err := e.fill(80); err != nil {
		t.Fatal(err)
	}

	response, err := e.client.Delete(t.Context(), "key-0", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := e.client.Compact(t.Context(), response.Header.GetRevision(), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}

	e.lookUntil("defragmentation", func() bool { return e.metric("omni_apiserver_etcd_defragmentations_total", "success") >= 1 })

	if got := e.metric("omni_apiserver_etcd_db_size_bytes", ""); got > 10*mib {
		t.Errorf("the file has %v bytes", got)
	}

	t.Logf("took %.3f s", e.metric("omni_apiserver_etcd_defragmentation_last_duration_seconds", ""))
}
