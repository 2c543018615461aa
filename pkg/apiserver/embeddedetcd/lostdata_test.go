package embeddedetcd_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

const anObject = "/omni-apiserver/omni.texashpc.com/omniclusters/default/one"

// begin starts a server on a directory beside snapshots; want is in the error, if there is to be one.
func begin(t *testing.T, dir, snapshots, want string) {
	t.Helper()

	server, err := embeddedetcd.Start(t.Context(), dir, embeddedetcd.Snapshots(snapshots))
	if err == nil {
		stop(t, server)
	}

	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// use runs a server without snapshots on a directory.
func use(t *testing.T, dir string, do func(*clientv3.Client)) {
	t.Helper()

	server := start(t, dir)
	defer stop(t, server)

	do(connect(t, server))
}

// saveBefore saves a snapshot of a directory, and stores an object after that.
func saveBefore(t *testing.T, dir, path string) {
	t.Helper()

	use(t, dir, func(client *clientv3.Client) {
		if _, err := snapshot.Save(t.Context(), client, path); err != nil {
			t.Fatal(err)
		}

		put(t, client, anObject, "{}")
	})
}

// TestLostData: a server does not start empty beside snapshots of objects.
func TestLostData(t *testing.T) {
	snapshots := filepath.Join(t.TempDir(), "snapshots")
	first := t.TempDir()

	begin(t, first, snapshots, "") // nothing is there yet

	if err := os.Mkdir(snapshots, 0o700); err != nil {
		t.Fatal(err)
	}

	saveBefore(t, first, filepath.Join(snapshots, "omni-20261121T000000Z.db"))
	begin(t, t.TempDir(), snapshots, "") // the snapshot has no objects

	newest := filepath.Join(snapshots, "omni-20261121T120000Z.db")
	saveBefore(t, first, newest)

	lost := t.TempDir()
	begin(t, lost, snapshots, "no data, but a snapshot of it, "+newest+", with 1 objects: is the right volume mounted?")
	begin(t, first, snapshots, "")

	restore(t, lost, newest, false, time.Now())
	begin(t, lost, snapshots, "")

	// What is left of lost data, and of a very first start that was killed, is no data.
	emptied := t.TempDir()
	for _, dir := range []string{"snap", "wal"} {
		if err := os.MkdirAll(filepath.Join(emptied, "member", dir), 0o700); err != nil {
			t.Fatal(err)
		}

		begin(t, emptied, snapshots, "no data, but a snapshot of it")
	}

	write(t, filepath.Join(emptied, "member", "snap", "db"), nil)
	begin(t, emptied, snapshots, "--etcd-data-dir="+emptied+" --replace), or move the snapshots away")
	restore(t, emptied, newest, true, time.Now())
	begin(t, emptied, snapshots, "")

	write(t, newest, []byte("damaged"))
	begin(t, t.TempDir(), snapshots, "damaged, as it seems")
}

// TestLostDataDamagedPages: a server that has no data does not start beside a snapshot with a damaged page, and does not crash.
func TestLostDataDamagedPages(t *testing.T) {
	snapshots, first := t.TempDir(), t.TempDir()
	path := filepath.Join(snapshots, "omni-20261121T000000Z.db")

	use(t, first, func(client *clientv3.Client) {
		for i := range 20 { // more than one page
			put(t, client, anObject+strconv.Itoa(i), strings.Repeat("x", 1000))
		}
	})
	saveBefore(t, first, path)
	damagePage(t, path, anObject+"7")
	begin(t, t.TempDir(), snapshots, "damaged, as it seems")
}

// damagePage clears the beginning of a page that has a text, and makes the checksum fit: as a snapshot that etcd made of a
// damaged database.
func damagePage(t *testing.T, path, text string) {
	t.Helper()

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	database, size := content[:len(content)-sha256.Size], os.Getpagesize()

	for at := 0; at < len(database); at += size {
		if bytes.Contains(database[at:at+size], []byte(text)) {
			clear(database[at : at+16])
		}
	}

	sum := sha256.Sum256(database)
	write(t, path, append(database, sum[:]...))
}
