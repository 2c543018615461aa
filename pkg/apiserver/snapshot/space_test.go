package snapshot_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

func TestCheckSpace(t *testing.T) {
	client := startEtcd(t)
	dir := t.TempDir()

	for _, dataDir := range []string{"", dir, "/proc", "/nowhere"} {
		if err := snapshot.CheckSpace(t.Context(), client, dir, dataDir); err != nil {
			t.Errorf("data in %q: %v", dataDir, err)
		}
	}

	// /proc never has room.
	if err := snapshot.CheckSpace(t.Context(), client, "/proc", dir); err == nil || !strings.Contains(err.Error(), "/proc has 0 bytes free") || strings.Contains(err.Error(), "same disk") {
		t.Errorf("another disk: %v", err)
	}

	if err := snapshot.CheckSpace(t.Context(), client, "/proc", "/proc"); err == nil || !strings.Contains(err.Error(), "so that etcd, on the same disk, can go on writing") {
		t.Errorf("the same disk: %v", err)
	}
}

// TestScheduleAfterTheClockWasSetBack: names with a time in the future neither delay the next snapshot, nor count as
// a success for alerts, nor are kept in its place.
func TestScheduleAfterTheClockWasSetBack(t *testing.T) {
	client := startEtcd(t)
	dir := t.TempDir()

	for _, name := range []string{"omni-29990101T000000Z.db", "omni-29990102T000000Z.db"} {
		touch(t, filepath.Join(dir, name))
	}

	made, value := measured(t)
	begin := time.Now()

	stop := run(t, &snapshot.Schedule{Client: client, DataDir: dir, Dir: dir, Interval: time.Hour, Retention: 2, Metrics: made})
	await.Until(t, "snapshot", func() bool { return value(lastSuccess) > 0 })
	stop()

	if got := value(lastSuccess); got > float64(begin.Add(time.Hour).Unix()) {
		t.Errorf("the last success is at %v", got)
	}

	got := names(t, dir)
	if len(got) != 2 || got[0] > "omni-2998" || got[1] != "omni-29990102T000000Z.db" {
		t.Errorf("the directory contains %q", got)
	}
}

// TestInspectAnotherDatabase: programs other than etcd use the same format.
func TestInspectAnotherDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")

	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("letters"))

		return err
	}); err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	appendChecksum(t, path)

	if _, err := snapshot.Inspect(path); err == nil || !strings.Contains(err.Error(), "not one of etcd") {
		t.Errorf("got %v", err)
	}
}

func appendChecksum(t *testing.T, path string) {
	t.Helper()

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	sum := sha256.Sum256(content)
	if err := os.WriteFile(path, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}
