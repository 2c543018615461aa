package embeddedetcd

import "testing"

// TestWritesAreSynced: an acknowledged write has to survive the loss of power. The test reads the setting from the
// running etcd, not from the configuration it was started with.
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
