package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/startup"
)

func TestSaveAndInspect(t *testing.T) {
	client := startEtcd(t)

	for _, key := range []string{"omniclusters/a/one", "omniclusters/a/two", "omniclusters/a/gone", "omniworkers/a/one"} {
		if _, err := client.Put(t.Context(), "/omni-apiserver/omni.texashpc.com/"+key, "{}"); err != nil {
			t.Fatal(err)
		}
	}

	last, err := client.Delete(t.Context(), "/omni-apiserver/omni.texashpc.com/omniclusters/a/gone")
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "saved.db")

	saved, err := snapshot.Save(t.Context(), client, path)
	if err != nil {
		t.Fatal(err)
	}

	info, err := snapshot.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(saved, info); diff != "" {
		t.Error(diff)
	}

	status, err := etcdsnapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		t.Fatal(err)
	}

	// etcd writes its version some seconds after the first start.
	want := &snapshot.Info{
		Path: path, Written: info.Written, Size: status.TotalSize + sha256.Size, Hash: fmt.Sprintf("%08x", status.Hash), Revision: last.Header.GetRevision(),
		Keys: 4, EtcdVersion: status.Version, DataVersion: 1, Objects: map[string]int{"omniclusters": 2, "omniworkers": 1}, Prefixes: []string{"/omni-apiserver"},
	}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Error(diff)
	}

	if file, err := os.Stat(path); err != nil || file.Mode().Perm() != 0o600 || len(info.Hash) != 8 {
		t.Errorf("%v, %v, hash %q", file.Mode(), err, info.Hash)
	}

}

// TestConnect: the way of another process to the etcd of a running server.
func TestConnect(t *testing.T) {
	dir := t.TempDir()

	if _, err := embeddedetcd.EndpointOf(dir); err == nil || !strings.Contains(err.Error(), "no omni-apiserver runs with --etcd-data-dir="+dir) {
		t.Errorf("nobody there: %v", err)
	}

	server, err := embeddedetcd.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Stop() }()

	endpoint, err := embeddedetcd.EndpointOf(dir)
	if err != nil {
		t.Fatal(err)
	}

	// The member that does not answer is passed over.
	client, err := startup.ConnectEtcd(t.Context(), startup.EtcdTarget{Endpoints: []string{"unix://" + filepath.Join(dir, "nobody.sock"), endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	var content bytes.Buffer
	if size, err := snapshot.Stream(t.Context(), client, &content); err != nil || size != int64(content.Len()) {
		t.Fatalf("%d bytes, %v", size, err)
	}

	path, err := snapshot.Receive(&content, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	if err := snapshot.Verify(path); err != nil {
		t.Error(err)
	}
}

// sends is an etcd that sends something.
type sends struct {
	clientv3.Maintenance

	content io.Reader
}

func (s sends) SnapshotWithVersion(context.Context) (*clientv3.SnapshotResponse, error) {
	return &clientv3.SnapshotResponse{Snapshot: io.NopCloser(s.content)}, nil
}

// TestSaveFails: what was under the name before is still there, and nothing else.
func TestSaveFails(t *testing.T) {
	tests := map[string]io.Reader{
		"cut off":   strings.NewReader(strings.Repeat("x", 1000)),
		"damaged":   strings.NewReader(strings.Repeat("x", 1024+32)),
		"nothing":   strings.NewReader(""),
		"goes away": io.MultiReader(strings.NewReader("x"), failing{}),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "saved.db")

			if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}

			if _, err := snapshot.Save(t.Context(), sends{content: content}, path); err == nil {
				t.Error("no error")
			}

			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("left: %v, %v", entries, err)
			}

			if content, err := os.ReadFile(path); err != nil || string(content) != "before" {
				t.Errorf("%q, %v", content, err)
			}
		})
	}
}

// TestSaveOverADevice: /dev/stdout is no name for standard output here.
func TestSaveOverADevice(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "stdout")

	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]string{link: "link", dir: "directory", os.DevNull: "device"} {
		if _, err := snapshot.Save(t.Context(), sends{content: strings.NewReader("")}, path); err == nil || !strings.Contains(err.Error(), path+" is no file, but a "+want) {
			t.Errorf("got %v", err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReceiveFails(t *testing.T) {
	dir := t.TempDir()

	if _, err := snapshot.Receive(strings.NewReader("half of a snapshot"), dir); err == nil || !strings.Contains(err.Error(), "this is not a whole snapshot") {
		t.Errorf("got %v", err)
	}

	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
