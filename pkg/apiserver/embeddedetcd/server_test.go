package embeddedetcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// requestTimeout is for one request, with all the time that a busy disk may take.
const requestTimeout = await.Limit

func start(t *testing.T, dir string) *embeddedetcd.Server {
	t.Helper()

	server, err := embeddedetcd.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	return server
}

func stop(t *testing.T, server *embeddedetcd.Server) {
	t.Helper()

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, server *embeddedetcd.Server) *clientv3.Client {
	t.Helper()

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, DialTimeout: requestTimeout})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { client.Close() })

	return client
}

func TestKeysOutliveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	first := start(t, dir)

	put(t, connect(t, first), "key", "value")
	stop(t, first)

	second := start(t, dir)
	defer stop(t, second)

	if value, _ := get(t, connect(t, second), "key"); value != "value" {
		t.Errorf("got %q", value)
	}
}

func TestOneProcessPerDirectory(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)

	_, err := embeddedetcd.Start(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "another omni-apiserver uses the etcd data directory "+dir) {
		t.Errorf("second start: %v", err)
	}

	stop(t, first)
	stop(t, start(t, dir))
}

func TestStopTwice(t *testing.T) {
	server := start(t, t.TempDir())
	stop(t, server)
	stop(t, server)
}

// TestLongDirectory: the path of a unix socket is short.
func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))

	_, err := embeddedetcd.Start(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "etcd.sock is too long for a socket: give an --etcd-data-dir of at most 93 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	stop(t, start(t, dir))

	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}

	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode %o, want 700", got)
	}
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := embeddedetcd.Start(t.Context(), file); err == nil || !strings.Contains(err.Error(), "make the etcd data directory") {
		t.Errorf("start on a file: %v", err)
	}
}

// TestKilledDefragmentation: etcd does not remove the copies that it was making.
func TestKilledDefragmentation(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))

	left := filepath.Join(dir, "member", "snap", "db.tmp.1234567890")
	write(t, left, []byte("half of a database"))

	server := start(t, dir)
	defer stop(t, server)

	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy: %v", err)
	}
}

func TestWhileRunning(t *testing.T) {
	server := start(t, t.TempDir())

	ctx, cancel := server.WhileRunning(t.Context())
	defer cancel()

	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}

	stop(t, server)

	await.Receive(t, "the end of the context, without etcd", ctx.Done())

	if cause := context.Cause(ctx); !errors.Is(cause, embeddedetcd.ErrStopped) {
		t.Errorf("cause %v", cause)
	}
}
