package embeddedetcd

import "testing"

// TestWritesAreSynced: an acknowledged write has to survive the loss of power. The etcd that runs is asked, not the
// configuration that it was made from.
func TestWritesAreSynced(t *testing.T) {
	server, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	if server.etcd.Server.Cfg.UnsafeNoFsync {
		t.Error("etcd does not sync its writes to the disk")
	}

	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
