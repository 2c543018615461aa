package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
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

// FuzzInspectPages damages pages, with a checksum that fits: what is read is the whole, or there is an error.
func FuzzInspectPages(f *testing.F) {
	database := largerDatabase(f)
	page := keyPage(f, database)

	for _, at := range []int{0, 4096, 2 * 4096, page, page + 8, page + 10, page + 12, page + 15, page + 16, page + 20, page + 24, page + 28, page + 31} {
		f.Add(at, []byte{0x7f})
		f.Add(at, []byte{0xff, 0xff, 0xff, 0xff})
	}

	f.Fuzz(func(t *testing.T, at int, change []byte) {
		content := signed(damage(database, at, change))

		foreigntest.WantAllocated(t, 64<<20, func() {
			if info, err := inspect(t, content); err == nil && info.Keys > 200 {
				t.Errorf("%+v", info)
			}
		})
	})
}

// changeMeta changes the two meta pages, whose checksum fits again.
func changeMeta(database []byte, change func(page []byte)) {
	for at := 0; at < 2*4096; at += 4096 {
		page := database[at:]
		change(page)

		sum := fnv.New64a()
		sum.Write(page[16:72])
		binary.NativeEndian.PutUint64(page[72:], sum.Sum64())
	}
}

// deepDatabase makes a file whose tree of pages is a chain: each page, of that many bytes, leads to the next one only.
func deepDatabase(t *testing.T, pages, pageBytes int) string {
	t.Helper()

	database := largerDatabase(t)
	root := 2 * 4096

	for binary.NativeEndian.Uint16(database[root+8:]) != 1 { // not a branch
		root += 4096
	}

	key := bytes.Clone(keyOfFirst(database[root:]))
	first := len(database) / 4096
	each := pageBytes / 4096

	changeMeta(database, func(page []byte) {
		binary.NativeEndian.PutUint64(page[56:], uint64(first+pages*each)) // the number of pages
	})

	return largeFile(t, (first+pages*each)*4096, func(write func(content []byte, at int)) {
		write(database, 0)
		write(branchOf(root/4096, 1, key, first), root)

		for i := range pages {
			number := first + i*each
			write(branchOf(number, each, key, number+each), number*4096)
		}
	})
}

// largeFile makes a snapshot of that many bytes, with its checksum. What is not written takes no room on the disk.
func largeFile(t *testing.T, size int, fill func(write func(content []byte, at int))) string {
	t.Helper()

	file, err := os.Create(filepath.Join(t.TempDir(), "snapshot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	write := func(content []byte, at int) {
		if _, err := file.WriteAt(content, int64(at)); err != nil {
			t.Fatal(err)
		}
	}

	fill(write)

	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}

	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, int64(size))); err != nil {
		t.Fatal(err)
	}

	write(sum.Sum(nil), size)

	return file.Name()
}

// keyOfFirst is the key of a branch's first element.
func keyOfFirst(page []byte) []byte {
	begin, size := binary.NativeEndian.Uint32(page[16:]), binary.NativeEndian.Uint32(page[20:])

	return page[16+begin:][:size]
}

// branchOf is the beginning of a branch with one element.
func branchOf(number, pages int, key []byte, child int) []byte {
	page := make([]byte, 32+len(key))
	copy(page[32:], key)
	binary.NativeEndian.PutUint64(page, uint64(number))
	binary.NativeEndian.PutUint16(page[8:], 1)
	binary.NativeEndian.PutUint16(page[10:], 1)
	binary.NativeEndian.PutUint32(page[12:], uint32(pages-1))
	binary.NativeEndian.PutUint32(page[16:], 16)
	binary.NativeEndian.PutUint32(page[20:], uint32(len(key)))
	binary.NativeEndian.PutUint64(page[24:], uint64(child))

	return page
}

// TestInspectDeepTree: a file that somebody made can have any tree of pages. What is read of it at once is bounded.
func TestInspectDeepTree(t *testing.T) {
	path := deepDatabase(t, 12, 32<<20)

	foreigntest.WantPeak(t, 300<<20, func() {
		if _, err := snapshot.Inspect(path); err == nil || !strings.Contains(err.Error(), "damaged, although its checksum fits") {
			t.Errorf("got %v", err)
		}
	})
}

// TestInspectPageSize: nor can a page have any size.
func TestInspectPageSize(t *testing.T) {
	for _, size := range []int{0, 1, 16, 512, 128 << 20, 1 << 31} {
		path := databaseOfPages(t, size)

		foreigntest.WantPeak(t, 64<<20, func() {
			if _, err := snapshot.Inspect(path); err == nil {
				t.Errorf("pages of %d bytes", size)
			}
		})
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

// databaseOfPages makes a file that says that its pages are that large. It has three of them, the root among them, if that
// is a file that can be read in a moment.
func databaseOfPages(t *testing.T, size int) string {
	t.Helper()

	database := largerDatabase(t)
	root := bytes.Clone(database[4096*binary.NativeEndian.Uint64(database[32:]):][:4096])
	binary.NativeEndian.PutUint64(root, 2)

	large := size > 4096 && size <= 128<<20

	changeMeta(database, func(page []byte) {
		binary.NativeEndian.PutUint32(page[24:], uint32(size))

		if large {
			binary.NativeEndian.PutUint64(page[32:], 2) // the root
			binary.NativeEndian.PutUint64(page[56:], 3) // the number of pages
		}
	})

	if !large {
		return largeFile(t, len(database), func(write func(content []byte, at int)) { write(database, 0) })
	}

	return largeFile(t, 3*size, func(write func(content []byte, at int)) {
		write(database, 0)
		write(root, 2*size)
	})
}
