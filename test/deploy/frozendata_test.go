package deploy

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// TestFrozenData: the programs of now serve what earlier ones stored, every object of every kind as it was: spec, status,
// owners of fields, and its resourceVersion, with which clients go on.
func TestFrozenData(t *testing.T) {
	t.Parallel()

	hub := startHub(t)

	binaries, err := env.BuildBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}

	for _, version := range frozenVersions(t) {
		t.Run(filepath.Base(version), func(t *testing.T) {
			r := prepare(t, hub, "")
			// A controller would begin to work, with an Omni that is not there.
			r.controllers = nil

			restore(t, binaries, filepath.Join(version, "snapshot.db.gz"), r.apiserver.etcdDir(t))
			kubectl(t, hub, r.manifest, "apply", "--server-side", "-f", "-")
			r.start(t, binaries, nil)

			want := objects(t, read(t, filepath.Join(version, "objects.json")))

			var got []any

			// kubectl hears of the group a moment after it is served.
			eventually(t, hub, "the objects", func(stdout string) error {
				got = objects(t, stdout)

				return nil
			}, "get", "omni", "-A", "-o", "json", "--show-managed-fields")

			dropNewBooleans(want, got)

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects read back differently; -before +now:\n%s", diff)
			}

			kinds := map[any]bool{}
			for _, object := range want {
				kinds[object.(map[string]any)["kind"]] = true
			}

			if len(kinds) != 8 {
				t.Errorf("the data has %d kinds only", len(kinds))
			}

			r.stop(t)
		})
	}
}

// dropNewBooleans takes out of the specs what did not exist when the objects were stored: a boolean of a spec is always
// shown, and a new one is false.
func dropNewBooleans(want, got []any) {
	for i := range min(len(want), len(got)) {
		before, _ := want[i].(map[string]any)["spec"].(map[string]any)
		now, _ := got[i].(map[string]any)["spec"].(map[string]any)

		maps.DeleteFunc(now, func(name string, value any) bool {
			_, existed := before[name]

			return !existed && value == false
		})
	}
}

// restore makes the data directory of omni-apiserver from a frozen snapshot, as an administrator would.
func restore(t *testing.T, binaries env.Binaries, snapshot, dir string) {
	t.Helper()

	file, err := os.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "snapshot.db")

	saved, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()

	if _, err := io.Copy(saved, content); err != nil {
		t.Fatal(err)
	}

	if out, err := exec.CommandContext(t.Context(), binaries.OmniAPIServer, "snapshot", "restore", path, "--etcd-data-dir="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// objects are the items of a list as kubectl prints it. Numbers are read as they are written: free-form fields have some
// that no float64 can hold.
func objects(t *testing.T, list string) []any {
	t.Helper()

	decoder := json.NewDecoder(strings.NewReader(list))
	decoder.UseNumber()

	var read struct{ Items []any }
	if err := decoder.Decode(&read); err != nil {
		t.Fatal(err)
	}

	return read.Items
}
