package snapshot_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

const (
	lastSuccess = "last_success_timestamp_seconds"
	failures    = "failures_total"
)

// run runs the schedule until the test or the returned function ends it.
func run(t *testing.T, s *snapshot.Schedule) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())

	var running sync.WaitGroup

	running.Go(func() { s.Run(ctx) })

	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)

	return stop
}

func names(t *testing.T, dir string) []string {
	t.Helper()

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}

	return names
}

func touch(t *testing.T, path string) {
	t.Helper()

	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSchedule(t *testing.T) {
	client := startEtcd(t)
	dir := filepath.Join(t.TempDir(), "new", "snapshots")
	made, value := measured(t)

	stop := run(t, &snapshot.Schedule{Client: client, DataDir: dir, Dir: dir, Interval: time.Second, Retention: 2, Metrics: made})

	await.Until(t, "first snapshot", func() bool { return value(lastSuccess) > 0 })

	first, err := snapshot.InDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}

	// Files of others stay; what a killed process left does not.
	touch(t, filepath.Join(dir, "by-hand.db"))
	touch(t, filepath.Join(dir, ".omni-snapshot-unfinished-1"))

	await.Until(t, "third snapshot", func() bool {
		found, err := snapshot.InDirectory(dir)

		return err == nil && len(found) == 2 && len(first) > 0 && found[0].Taken.After(first[0].Taken)
	})
	stop()

	got := names(t, dir)
	if len(got) != 3 || got[0] != "by-hand.db" {
		t.Errorf("the directory contains %q", got)
	}

	found, err := snapshot.InDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, scheduled := range found {
		if err := snapshot.Verify(scheduled.Path); err != nil {
			t.Error(err)
		}
	}

	if value(failures) != 0 {
		t.Errorf("%v failures", value(failures))
	}
}

// TestScheduleFails: an old snapshot stays when there is no new one, and the failure is counted.
func TestScheduleFails(t *testing.T) {
	client := startEtcd(t)
	client.Close()

	dir := t.TempDir()
	touch(t, filepath.Join(dir, "omni-20200101T000000Z.db"))
	touch(t, filepath.Join(dir, "omni-20200102T000000Z.db"))

	made, value := measured(t)
	run(t, &snapshot.Schedule{Client: client, DataDir: dir, Dir: dir, Interval: time.Hour, Retention: 1, Metrics: made})
	await.Until(t, "failure", func() bool { return value(failures) > 0 })

	if got := names(t, dir); len(got) != 2 {
		t.Errorf("the directory contains %q", got)
	}

	if got := value(lastSuccess); got != 1577923200 {
		t.Errorf("the last success was %v", got)
	}
}

func TestScheduleWithoutADirectory(t *testing.T) {
	client := startEtcd(t)
	file := filepath.Join(t.TempDir(), "file")
	touch(t, file)

	made, value := measured(t)
	run(t, &snapshot.Schedule{Client: client, DataDir: file, Dir: file, Interval: time.Hour, Retention: 1, Metrics: made})
	await.Until(t, "failure", func() bool { return value(failures) > 0 })
}

// TestScheduleGoesOn: a restart does not begin a new interval.
func TestScheduleGoesOn(t *testing.T) {
	client := startEtcd(t)
	dir := t.TempDir()
	made, value := measured(t)

	touch(t, filepath.Join(dir, "omni-"+time.Now().UTC().Format("20060102T150405Z")+".db"))
	stop := run(t, &snapshot.Schedule{Client: client, DataDir: dir, Dir: dir, Interval: time.Hour, Retention: 5, Metrics: made})
	await.Until(t, "look at the directory", func() bool { return value(lastSuccess) > 0 })
	time.Sleep(200 * time.Millisecond)
	stop()

	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory contains %q", got)
	}
}
