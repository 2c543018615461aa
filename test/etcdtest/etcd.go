// Package etcdtest runs the embedded etcd for tests.
package etcdtest

import (
	"os"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
)

// Start starts an etcd that stops at the end of the test.
func Start(t *testing.T, dir string, options ...embeddedetcd.Option) *embeddedetcd.Server {
	t.Helper()

	etcd, err := embeddedetcd.Start(t.Context(), dir, options...)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := etcd.Stop(); err != nil {
			t.Error(err)
		}
	})

	return etcd
}

// ShortDirectory makes a directory with a path that is short enough for a unix socket in it, which that of t.TempDir may
// not be.
func ShortDirectory(t *testing.T) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { os.RemoveAll(dir) })

	return dir
}
