package embeddedetcd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// TestLostData: a server does not start empty beside snapshots of objects.
func TestLostData(t *testing.T) {
	snapshots := filepath.Join(t.TempDir(), "snapshots")
	first := t.TempDir()

	begin := func(dir, want string) {
		t.Helper()

		server, err := embeddedetcd.Start(t.Context(), dir, embeddedetcd.Snapshots(snapshots))

		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want == "":
			stop(t, server)
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("got %v, want %q in it", err, want)
		}
	}

	begin(first, "") // nothing is there yet

	if err := os.Mkdir(snapshots, 0o700); err != nil {
		t.Fatal(err)
	}

	save := func(name string) string {
		t.Helper()

		server := start(t, first)
		defer stop(t, server)

		client := connect(t, server)
		path := filepath.Join(snapshots, name)

		if _, err := snapshot.Save(t.Context(), client, path); err != nil {
			t.Fatal(err)
		}

		put(t, client, "/omni-apiserver/omni.texashpc.com/omniclusters/default/one", "{}")

		return path
	}

	save("omni-20261121T000000Z.db")
	begin(t.TempDir(), "") // the snapshot has no objects

	newest := save("omni-20261121T120000Z.db")
	lost := t.TempDir()
	begin(lost, "no data, but a snapshot of it, "+newest+", with 1 objects: is the right volume mounted?")
	begin(first, "")

	// What is left of lost data, and of a very first start that was killed, is no data.
	emptied := t.TempDir()
	for _, dir := range []string{"snap", "wal"} {
		if err := os.MkdirAll(filepath.Join(emptied, "member", dir), 0o700); err != nil {
			t.Fatal(err)
		}

		begin(emptied, "no data, but a snapshot of it")
	}

	write(t, filepath.Join(emptied, "member", "snap", "db"), nil)
	begin(emptied, "--etcd-data-dir="+emptied+" --replace), or move the snapshots away")
	restore(t, emptied, newest, true, time.Now())
	begin(emptied, "")

	restore(t, lost, newest, false, time.Now())
	begin(lost, "")

	write(t, newest, []byte("damaged"))
	begin(t.TempDir(), "damaged, as it seems")
}
