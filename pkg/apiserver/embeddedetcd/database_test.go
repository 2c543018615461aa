package embeddedetcd

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// emptyDatabase makes a data directory without objects.
func emptyDatabase(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()

	server, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}

	return dir
}

// TestFailingDisk: the database is whole when the disk works again, so nobody may be told to restore an older one.
func TestFailingDisk(t *testing.T) {
	dir := emptyDatabase(t)
	failing := func(path string) (io.ReadCloser, error) {
		failure := &os.PathError{Op: "read", Path: path, Err: syscall.EIO}

		return io.NopCloser(io.MultiReader(strings.NewReader("half of it"), iotest.ErrReader(failure))), nil
	}

	err := new(Server).start(t.Context(), dir, settings{quota: DefaultQuota, open: failing})
	if err == nil || !strings.Contains(err.Error(), "db: input/output error: the disk fails: look at the volume and at its node") {
		t.Errorf("got %v", err)
	}

	if err != nil && strings.Contains(err.Error(), "db is damaged") {
		t.Errorf("a whole database is called damaged: %v", err)
	}
}

// TestDiskThatFailsInBetween: a page that was read may have left the memory before bbolt reads it again.
func TestDiskThatFailsInBetween(t *testing.T) {
	dir := emptyDatabase(t)
	reads := 0
	failing := func(path string) (io.ReadCloser, error) {
		if reads++; reads > 1 {
			return io.NopCloser(iotest.ErrReader(&os.PathError{Op: "read", Path: path, Err: syscall.EIO})), nil
		}

		// What bbolt reads is not there any more, as with a disk that fails: both are faults.
		return io.NopCloser(strings.NewReader("all of it")), os.Truncate(path, 2*int64(os.Getpagesize()))
	}

	err := refuseUnusable(t.Context(), dir, failing)
	if err == nil || !strings.Contains(err.Error(), "the disk fails") || strings.Contains(err.Error(), "db is damaged") {
		t.Errorf("got %v", err)
	}
}

// TestStoppedWhileItReads: a stop is no failure of the disk, and neither is the end of the time for the start.
func TestStoppedWhileItReads(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	open := func(string) (io.ReadCloser, error) {
		cancel()

		return io.NopCloser(strings.NewReader("all of it")), nil
	}

	if err := readDatabase(ctx, "db", open); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "disk") {
		t.Errorf("got %v", err)
	}

	over, cancel := context.WithDeadlineCause(t.Context(), time.Now(), errors.New("gave up after 4m0s"))
	defer cancel()

	if err := readDatabase(over, "db", open); err == nil || err.Error() != "read the database: gave up after 4m0s" {
		t.Errorf("got %v", err)
	}
}

// TestLongCheck: etcd has the whole time of its start, however long the file of the database was read before.
func TestLongCheck(t *testing.T) {
	dir := emptyDatabase(t)
	server := &Server{lock: &directoryLock{}, callers: newCallers(), timeout: closeTimeout}

	// All of etcd's time is over at once. That must not end the checks.
	err := server.start(t.Context(), dir, settings{quota: DefaultQuota, open: openFile, timeout: time.Nanosecond})
	if err == nil || server.etcd == nil {
		t.Errorf("got %v; etcd was started: %t", err, server.etcd != nil)
	}

	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
