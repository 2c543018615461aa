package deploy

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkAtRest reads what is on the disk of the etcd inside, of the objects that useAPI made through the hub: whether the
// specs of OmniConnections can be read there. Those of OmniClusters always can, because the encryption configuration does
// not name them: so what is looked for would be found. Of the connection that is its CA bundle: its other words may stand
// in the messages of its clusters.
func checkAtRest(t *testing.T, r *running, encrypted bool) {
	t.Helper()

	const connectionSpec, clusterSpec = `"caBundle":"`, "v1.35.1"

	stored := onDisk(t, r.apiserver.etcdDir(t))
	if got := !bytes.Contains(stored, []byte(connectionSpec)); got != encrypted {
		t.Errorf("the spec of the OmniConnection is encrypted on the disk: %t, want %t", got, encrypted)
	}

	for _, text := range []string{clusterSpec, "/omni.texashpc.com/omniconnections/", "/omni.texashpc.com/omniclusters/"} {
		if !bytes.Contains(stored, []byte(text)) {
			t.Errorf("%s is not on the disk: were the objects written elsewhere?", text)
		}
	}
}

// etcdDir is where the etcd inside the API server has its data.
func (p *pod) etcdDir(t *testing.T) string {
	t.Helper()

	for _, arg := range p.Args() {
		if dir, found := strings.CutPrefix(arg, "--etcd-data-dir="); found {
			return dir
		}
	}

	t.Fatalf("%s has no etcd inside", p.Workload)

	return ""
}

// onDisk is the content of all files below a directory.
func onDisk(t *testing.T, dir string) []byte {
	t.Helper()

	var all []byte

	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		content, err := os.ReadFile(path)
		all = append(all, content...)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	return all
}
