package embeddedetcd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// saved makes a snapshot in which key is "old" and returns the snapshot's path. Afterwards it sets key to "new" in
// the etcd.
func saved(t *testing.T, dir string) string {
	t.Helper()

	server := start(t, dir)
	defer stop(t, server)

	client := connect(t, server)
	put(t, client, "key", "old")

	path := filepath.Join(t.TempDir(), "snapshot.db")
	if _, err := snapshot.Save(t.Context(), client, path); err != nil {
		t.Fatal(err)
	}

	put(t, client, "key", "new")

	return path
}

func put(t *testing.T, client *clientv3.Client, key, value string) int64 {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()

	response, err := client.Put(ctx, key, value)
	if err != nil {
		t.Fatal(err)
	}

	return response.Header.Revision
}

func get(t *testing.T, client *clientv3.Client, key string) (value string, revision int64) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()

	response, err := client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}

	for _, kv := range response.Kvs {
		value = string(kv.Value)
	}

	return value, response.Header.Revision
}

func restore(t *testing.T, dir, path string, replace bool, now time.Time) *embeddedetcd.Restored {
	t.Helper()

	result, err := embeddedetcd.Restore(dir, path, replace, now)
	if err != nil {
		t.Fatal(err)
	}

	return result
}

func TestRestoreIntoANewDirectory(t *testing.T) {
	path := saved(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "new")
	result := restore(t, dir, path, false, time.Now())

	server := start(t, dir)
	defer stop(t, server)

	client := connect(t, server)

	value, revision := get(t, client, "key")
	if value != "old" || revision < result.Revision || result.Replaced != "" {
		t.Errorf("value %q at revision %d after %+v", value, revision, result)
	}

	// Revisions from before the restore are gone, whether the snapshot had them or not.
	for _, old := range []int64{1, result.Snapshot.Revision, result.Snapshot.Revision + 1} {
		if err := watchFrom(t, client, old); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("watch from %d: %v", old, err)
		}
	}

	if next := put(t, client, "key", "next"); next <= result.Revision {
		t.Errorf("the next revision is %d", next)
	}
}

func watchFrom(t *testing.T, client *clientv3.Client, revision int64) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()

	response := <-client.Watch(ctx, "key", clientv3.WithRev(revision))

	return response.Err()
}

// TestRestoreTwice: the second restore of one snapshot does not reuse the revisions of writes between the two
// restores.
func TestRestoreTwice(t *testing.T) {
	path := saved(t, t.TempDir())
	dir := t.TempDir()
	now := time.Now()
	first := restore(t, dir, path, false, now)

	server := start(t, dir)
	written := put(t, connect(t, server), "key", "between")
	stop(t, server)

	second := restore(t, dir, path, true, now.Add(time.Minute))
	if second.Revision <= written || written <= first.Revision {
		t.Errorf("revisions %d, %d, %d do not rise", first.Revision, written, second.Revision)
	}

	if _, err := os.Stat(filepath.Join(second.Replaced, "snap", "db")); err != nil {
		t.Errorf("the data of before: %v", err)
	}

	again := start(t, dir)
	defer stop(t, again)

	if value, _ := get(t, connect(t, again), "key"); value != "old" {
		t.Errorf("value %q", value)
	}
}

// TestRestoreIntoEmptyDirectories: where the data of an earlier restore is gone, only the clock tells which revisions it
// may have handed out. The snapshot is itself of data that was restored a short time before.
func TestRestoreIntoEmptyDirectories(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	restore(t, dir, saved(t, t.TempDir()), false, now)

	path := saved(t, dir)
	first := filepath.Join(t.TempDir(), "first")
	restore(t, first, path, false, now.Add(20*time.Minute))

	server := start(t, first)
	written := put(t, connect(t, server), "key", "between")
	stop(t, server)

	second := restore(t, filepath.Join(t.TempDir(), "second"), path, false, now.Add(40*time.Minute))
	if second.Revision <= written {
		t.Errorf("the second restore begins at %d, but the first handed out %d", second.Revision, written)
	}

	// Clients in JavaScript may read a resourceVersion as a number.
	if second.Revision >= 1<<53 {
		t.Errorf("revision %d", second.Revision)
	}
}

func TestRestoreRefuses(t *testing.T) {
	used := t.TempDir()
	path := saved(t, used)

	damaged := filepath.Join(t.TempDir(), "damaged.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	content[len(content)/2] ^= 1
	write(t, damaged, content)

	cut := filepath.Join(t.TempDir(), "cut.db")
	write(t, cut, content[:len(content)-100])

	tests := []struct{ name, dir, path, want string }{
		{"data", used, path, "--replace"},
		{"damaged", t.TempDir(), damaged, "the checksum does not match"},
		{"cut off", t.TempDir(), cut, "this is not a whole snapshot"},
		{"a database file", t.TempDir(), filepath.Join(used, "member", "snap", "db"), "this is not a whole snapshot"},
		{"no file", t.TempDir(), filepath.Join(used, "nothing"), "no such file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := embeddedetcd.Restore(test.dir, test.path, false, time.Now()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}

	server := start(t, used)
	defer stop(t, server)

	if _, err := embeddedetcd.Restore(used, path, true, time.Now()); err == nil || !strings.Contains(err.Error(), "another omni-apiserver uses") {
		t.Errorf("under a running server: %v", err)
	}

	if value, _ := get(t, connect(t, server), "key"); value != "new" {
		t.Errorf("value %q", value)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()

	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRestoreRefusesNewerData(t *testing.T) {
	server := start(t, t.TempDir())
	client := connect(t, server)
	put(t, client, snapshot.DataVersionKey, strconv.Itoa(snapshot.DataVersion+1))

	path := filepath.Join(t.TempDir(), "snapshot.db")
	if _, err := snapshot.Save(t.Context(), client, path); err != nil {
		t.Fatal(err)
	}

	stop(t, server)

	dir := t.TempDir()
	if _, err := embeddedetcd.Restore(dir, path, false, time.Now()); !errors.Is(err, snapshot.ErrNewerData) {
		t.Errorf("got %v", err)
	}
}

// TestRestoreThatDied: a server does not start empty where a restore was cut off, and the restore can
// be repeated.
func TestRestoreThatDied(t *testing.T) {
	path := saved(t, t.TempDir())
	dir := t.TempDir()

	if err := os.MkdirAll(filepath.Join(dir, "restore.unfinished", "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}

	if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "did not finish: run omni-apiserver snapshot restore again") {
		t.Errorf("start: %v", err)
	}

	restore(t, dir, path, false, time.Now())

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}

	if want := []string{"member", "omni-apiserver.lock"}; !slices.Equal(names, want) {
		t.Errorf("the directory contains %q, want %q", names, want)
	}

	stop(t, start(t, dir))
}

// TestRestoreThatDiedBeforeItsEnd: with data in place, what else is left does not matter.
func TestRestoreThatDiedBeforeItsEnd(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))

	if err := os.Mkdir(filepath.Join(dir, "restore.unfinished"), 0o700); err != nil {
		t.Fatal(err)
	}

	stop(t, start(t, dir))
}

// restoreOf is the environment variable with the directory and the snapshot that TestRestoreInAProcess restores.
const restoreOf = "RESTORE_OF"

// TestRestoreInAProcess is run by TestRestoreOverDamagedPages in a child process, because a fault in a memory-mapped file
// may end the process.
func TestRestoreInAProcess(t *testing.T) {
	dir, path, asked := strings.Cut(os.Getenv(restoreOf), "\n")
	if !asked {
		return
	}

	if result := restore(t, dir, path, true, time.Now()); result.Replaced == "" {
		t.Errorf("nothing was put aside: %+v", result)
	}
}

// TestRestoreOverDamagedPages: the last key, which a restore looks for, is where no page is.
func TestRestoreOverDamagedPages(t *testing.T) {
	path := saved(t, t.TempDir())

	for name, damage := range map[string]func(whole []byte, root, size int) []byte{
		"a page far away": func(whole []byte, root, size int) []byte {
			page := whole[root*size:]
			last := 16 * int(binary.LittleEndian.Uint16(page[10:])) // of the elements after the header, which is as long as one
			binary.LittleEndian.PutUint64(page[last+8:], 0xffffffff)

			return whole
		},
		"cut off": func(whole []byte, root, size int) []byte { return whole[:root*size] },
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t)
			database := filepath.Join(dir, "member", "snap", "db")
			root, size := rootOfKeys(t, database)
			write(t, database, damage(content(t, database), root, size))

			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRestoreInAProcess$")
			command.Env = append(os.Environ(), restoreOf+"="+dir+"\n"+path)

			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v:\n%.2000s", err, out)
			}

			server := start(t, dir)
			defer stop(t, server)

			if value, _ := get(t, connect(t, server), "key"); value != "old" {
				t.Errorf("value %q", value)
			}
		})
	}
}
