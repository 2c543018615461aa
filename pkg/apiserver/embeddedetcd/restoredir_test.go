package embeddedetcd_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

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

func content(t *testing.T, path string) []byte {
	t.Helper()

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return content
}

func TestRestoreStream(t *testing.T) {
	stream := content(t, saved(t, t.TempDir()))
	dir := filepath.Join(t.TempDir(), "new")

	if _, err := embeddedetcd.RestoreStream(dir, bytes.NewReader(stream), false, time.Now()); err != nil {
		t.Fatal(err)
	}

	if got, want := names(t, dir), []string{"member", "omni-apiserver.lock"}; !slices.Equal(got, want) {
		t.Errorf("the directory contains %q, want %q", got, want)
	}

	server := start(t, dir)
	defer stop(t, server)

	if value, _ := get(t, connect(t, server), "key"); value != "old" {
		t.Errorf("value %q", value)
	}
}

// TestRestoreStreamIsNotRead: a snapshot may be as large as what is left on the disk of a running server.
func TestRestoreStreamIsNotRead(t *testing.T) {
	used := t.TempDir()
	server := start(t, used)
	never := iotest.ErrReader(errors.New("it was read"))

	if _, err := embeddedetcd.RestoreStream(used, never, true, time.Now()); err == nil || !strings.Contains(err.Error(), "another omni-apiserver uses") {
		t.Errorf("got %v", err)
	}

	stop(t, server)

	if _, err := embeddedetcd.RestoreStream(used, never, false, time.Now()); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("got %v", err)
	}
}

// TestRestoreStreamFails: the data of before stays; where there was none, a server does not start empty
// although somebody wanted to have data there.
func TestRestoreStreamFails(t *testing.T) {
	cut := func() io.Reader {
		return io.MultiReader(strings.NewReader("half of a snapshot"), iotest.ErrReader(errors.New("connection lost")))
	}
	used := t.TempDir()
	path := saved(t, used)

	if _, err := embeddedetcd.RestoreStream(used, cut(), true, time.Now()); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("got %v", err)
	}

	server := start(t, used)
	if value, _ := get(t, connect(t, server), "key"); value != "new" {
		t.Errorf("value %q", value)
	}

	stop(t, server)

	empty := t.TempDir()
	if _, err := embeddedetcd.RestoreStream(empty, cut(), false, time.Now()); err == nil || !strings.Contains(err.Error(), "will not start on it: repeat the restore") {
		t.Errorf("got %v", err)
	}

	if _, err := embeddedetcd.Start(t.Context(), empty); err == nil || !strings.Contains(err.Error(), "did not finish") {
		t.Errorf("start: %v", err)
	}

	restore(t, empty, path, false, time.Now())
	stop(t, start(t, empty))
}

// TestRestoreOfNothing: a mistake in a name leaves no mark on a directory.
func TestRestoreOfNothing(t *testing.T) {
	dir := t.TempDir()

	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := embeddedetcd.Restore(dir, path, false, time.Now()); err == nil || !strings.Contains(err.Error(), path+" is no snapshot") {
			t.Errorf("got %v", err)
		}
	}

	if got := names(t, dir); len(got) > 0 {
		t.Errorf("the directory contains %q", got)
	}
}

// TestRestoreFromInside: a snapshot may lie in the data directory, since the image has no other place
// that outlives a Pod.
func TestRestoreFromInside(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "before-upgrade.db")
	write(t, inside, content(t, saved(t, dir)))
	restore(t, dir, inside, true, time.Now())

	server := start(t, dir)
	defer stop(t, server)

	if value, _ := get(t, connect(t, server), "key"); value != "old" {
		t.Errorf("value %q", value)
	}
}

// TestRestoreRefusesForeignSnapshots: an etcd of another program is no lost volume of ours.
func TestRestoreRefusesForeignSnapshots(t *testing.T) {
	server := start(t, t.TempDir())
	client := connect(t, server)
	put(t, client, "/registry/secrets/kube-system/one", "{}")

	if _, err := client.Delete(t.Context(), snapshot.DataVersionKey); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "snapshot.db")
	if _, err := snapshot.Save(t.Context(), client, path); err != nil {
		t.Fatal(err)
	}

	dir := filepath.Join(t.TempDir(), "new")
	if _, err := embeddedetcd.Restore(dir, path, false, time.Now()); !errors.Is(err, embeddedetcd.ErrForeign) {
		t.Errorf("got %v", err)
	}

	if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "restore.unfinished")) {
		t.Errorf("start: %v", err)
	}

	// An etcd of somebody's own has our objects without our version.
	put(t, client, "/omni-apiserver/omni.texashpc.com/omniclusters/default/one", "{}")

	if _, err := snapshot.Save(t.Context(), client, path); err != nil {
		t.Fatal(err)
	}

	stop(t, server)
	restore(t, dir, path, false, time.Now())
	stop(t, start(t, dir))
}

// TestRestoreAfterTheClockWasSetBack: the revisions of an earlier restore came from a clock that was
// ahead.
func TestRestoreAfterTheClockWasSetBack(t *testing.T) {
	path := saved(t, t.TempDir())
	dir := t.TempDir()
	ahead := restore(t, dir, path, false, time.Now().AddDate(10, 0, 0))
	back := restore(t, dir, path, true, time.Now())

	if back.Revision <= ahead.Revision {
		t.Errorf("the second restore begins at %d, the first at %d", back.Revision, ahead.Revision)
	}

	server := start(t, dir)
	defer stop(t, server)

	if err := watchFrom(t, connect(t, server), ahead.Revision+1); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("watch from a lost revision: %v", err)
	}
}

// TestRestoreThatDiedBetweenItsRenames: the way back is said, too.
func TestRestoreThatDiedBetweenItsRenames(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))

	aside := filepath.Join(dir, "replaced-20261121T000000Z")
	if err := errors.Join(os.Rename(filepath.Join(dir, "member"), aside), os.Mkdir(filepath.Join(dir, "restore.unfinished"), 0o700)); err != nil {
		t.Fatal(err)
	}

	if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "to go back, rename "+aside) {
		t.Errorf("start: %v", err)
	}

	if err := os.Rename(aside, filepath.Join(dir, "member")); err != nil {
		t.Fatal(err)
	}

	stop(t, start(t, dir))

	if got := names(t, dir); slices.Contains(got, "restore.unfinished") {
		t.Errorf("left: %q", got)
	}
}
