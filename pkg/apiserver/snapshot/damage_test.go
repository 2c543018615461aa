package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

const sector = 512

// largerDatabase is the file of an etcd database whose keys fill many pages, and one value several of them.
func largerDatabase(t testing.TB) []byte {
	t.Helper()

	return databaseOf(t, &bolt.Options{NoFreelistSync: true, PageSize: 4096}, fill) // as etcd opens it
}

func fill(keys *bolt.Bucket) error {
	for revision := range int64(200) {
		size := 300
		if revision == 100 {
			size = 10_000
		}

		value, err := proto.Marshal(&mvccpb.KeyValue{
			Key: fmt.Appendf(nil, "/omni-apiserver/omni.texashpc.com/omniclusters/a/%03d", revision), Value: bytes.Repeat([]byte("v"), size),
		})
		if err != nil {
			return err
		}

		if err := keys.Put(mvcc.RevToBytes(mvcc.Revision{Main: revision + 2}, mvcc.NewRevBytes()), value); err != nil {
			return err
		}
	}

	return nil
}

// signed appends the checksum that etcd would: etcd computes it when it copies pages, whatever is in them.
func signed(database []byte) []byte {
	sum := sha256.Sum256(database)

	return append(bytes.Clone(database), sum[:]...)
}

func inspect(t *testing.T, content []byte) (*snapshot.Info, error) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	return snapshot.Inspect(path)
}

// keyPage finds a page of a database that has keys only.
func keyPage(t testing.TB, database []byte) int {
	t.Helper()

	for at := 2 * 4096; at < len(database); at += 4096 {
		if leaf, count := binary.NativeEndian.Uint16(database[at+8:]) == 2, binary.NativeEndian.Uint16(database[at+10:]); leaf && count > 4 {
			return at
		}
	}

	t.Fatal("no page has keys")

	return 0
}

// TestSaveOfADamagedDatabase: etcd goes on with a damaged page that it does not read, and its checksum is that of what it
// sends. The file of before is still there, and nothing else.
func TestSaveOfADamagedDatabase(t *testing.T) {
	database := largerDatabase(t)
	clear(database[keyPage(t, database):][:sector])

	dir := t.TempDir()
	path := filepath.Join(dir, "saved.db")
	touch(t, path)

	_, err := snapshot.Save(t.Context(), sends{content: bytes.NewReader(signed(database))}, path)
	if err == nil || !strings.Contains(err.Error(), "damaged, although its checksum fits") {
		t.Errorf("got %v", err)
	}

	if content, err := os.ReadFile(path); err != nil || string(content) != "x" || len(names(t, dir)) != 1 {
		t.Errorf("%d bytes, %v, in %q", len(content), err, names(t, dir))
	}
}

// TestInspectDamagedSectors: whatever sector of a disk is bad, there is an error or the same content, and no panic: bbolt
// has goroutines of its own, whose panics end the process.
func TestInspectDamagedSectors(t *testing.T) {
	database := largerDatabase(t)

	whole, err := inspect(t, signed(database))
	if err != nil || whole.Objects["omniclusters"] != 200 {
		t.Fatalf("%v, %v", whole, err)
	}

	page := keyPage(t, database)

	for at := 2 * 4096; at < len(database); at += sector {
		for _, content := range []byte{0, 0xff} {
			damaged := damage(database, at, bytes.Repeat([]byte{content}, sector))

			switch info, err := inspect(t, signed(damaged)); {
			case at == page && err == nil:
				t.Errorf("no error for a damaged page, at %d", at)
			case err == nil && (info.Revision != whole.Revision || info.Keys != whole.Keys):
				t.Errorf("sector at %d, filled with %x: %+v", at, content, info)
			}
		}
	}
}

// TestInspectDamagedFields: so it is with the fields of pages, one after the other.
func TestInspectDamagedFields(t *testing.T) {
	database := largerDatabase(t)
	page := keyPage(t, database)

	for _, at := range []int{0, 4096, 2 * 4096, page, page + 8, page + 10, page + 12, page + 15, page + 16, page + 20, page + 24, page + 28, page + 31} {
		for _, change := range []string{"\x7f", "\xff\xff\xff\xff"} {
			if info, err := inspect(t, signed(damage(database, at, []byte(change)))); err == nil && info.Keys > 200 {
				t.Errorf("%q at %d: %+v", change, at, info)
			}
		}
	}
}

// TestInspectPagesOfMachines: the pages of a machine have up to 64 KiB.
func TestInspectPagesOfMachines(t *testing.T) {
	for size, want := range map[int]bool{4 << 10: true, 16 << 10: true, 64 << 10: true, 128 << 10: false} {
		if _, err := inspect(t, signed(databaseOf(t, &bolt.Options{PageSize: size}, fill))); (err == nil) != want {
			t.Errorf("pages of %d bytes: %v", size, err)
		}
	}
}
