package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestEtcdSnapshotAndRestore goes the way of docs/how-to/backup.md: a snapshot of the running server,
// a loss of the volume, a restore. The controller runs all the time. Objects and watches of the time
// after the snapshot are gone, and nothing is destroyed for that.
func TestEtcdSnapshotAndRestore(t *testing.T) {
	slow(t)
	f := newFleet(t)
	f.cluster("c")

	dir := stack.OmniAPIServer.EtcdDataDir
	saved := filepath.Join(t.TempDir(), "saved.db")
	apiServerCommand(t, "snapshot", "save", saved, "--etcd-data-dir="+dir)

	f.apply(workersManifest("later", "c", classOf(pool, 1)))
	f.waitMachines("c", "later", 1)
	f.ready("c")

	content, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}

	lost := f.run("get", "ow", "later", "-o", "jsonpath={.metadata.resourceVersion}")

	if err := stack.OmniAPIServer.Stop(); err != nil {
		t.Fatal(err)
	}

	refusesToStartEmpty(t, dir, content)

	content[len(content)/2] ^= 0xff
	damaged := write(t, filepath.Join(t.TempDir(), "damaged.db"), content)

	if out, err := tryAPIServerCommand(t, "snapshot", "restore", damaged, "--etcd-data-dir="+dir, "--replace"); err == nil || !strings.Contains(out, "the checksum does not match") {
		t.Errorf("a damaged snapshot: %v, %s", err, out)
	}

	if out := apiServerCommand(t, "snapshot", "restore", saved, "--etcd-data-dir="+dir, "--replace"); !strings.Contains(out, "The data of before is in "+dir) {
		t.Errorf("restore printed %s", out)
	}

	if err := stack.OmniAPIServer.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	if out, err := f.try("get", "ow", "later"); err == nil {
		t.Errorf("the snapshot has a later object: %s", out)
	}

	f.run("get", "ow", "c-w")

	watch := "/apis/" + v1alpha1.GroupName + "/v1alpha1/namespaces/" + f.name + "/omniworkers?watch=true&timeoutSeconds=5&resourceVersion=" + lost
	if out, err := f.try("get", "--raw", watch); !strings.Contains(errors.Join(err, errors.New(out)).Error(), "410") && !strings.Contains(out, "too old resource version") {
		t.Errorf("watch from a lost resourceVersion: %s, %v", out, err)
	}

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, `MachineSet "c-later"`, "not made by this object")
	f.wantDestroyed()

	f.apply(workersManifest("later", "c", classOf(pool, 1)))
	f.ready("c")
}

// refusesToStartEmpty loses the data beside a snapshot of objects, tries to start, and brings the data back.
func refusesToStartEmpty(t *testing.T, dir string, snapshot []byte) {
	t.Helper()

	data, aside := filepath.Join(dir, "member"), filepath.Join(dir, "aside")
	if err := errors.Join(os.Rename(data, aside), os.MkdirAll(filepath.Join(dir, "snapshots"), 0o700)); err != nil {
		t.Fatal(err)
	}

	newest := write(t, filepath.Join(dir, "snapshots", time.Now().UTC().Format("omni-20060102T150405Z.db")), snapshot)

	if err := stack.OmniAPIServer.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no data, but a snapshot of it, "+newest) {
		t.Errorf("a start without data: %v", err)
	}

	if err := errors.Join(os.Rename(aside, data), os.Remove(newest)); err != nil {
		t.Fatal(err)
	}
}

// write makes a file, and returns its path.
func write(t *testing.T, path string, content []byte) string {
	t.Helper()

	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// apiServerCommand runs the program for something else than serving.
func apiServerCommand(t *testing.T, args ...string) string {
	t.Helper()

	out, err := tryAPIServerCommand(t, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}

	return out
}

func tryAPIServerCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	out, err := exec.CommandContext(ctx, stack.OmniAPIServer.BinaryPath(), args...).CombinedOutput()

	return string(out), err
}
