package embeddedetcd_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// writeRaw writes past etcd into its database.
func writeRaw(t *testing.T, dir, bucket, key, value string) {
	t.Helper()

	db, err := bolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	if err := db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(bucket)).Put([]byte(key), []byte(value))
	}); err != nil {
		t.Fatal(err)
	}
}

func TestVersionsOfEtcd(t *testing.T) {
	const refused = "used by a newer omni-apiserver (etcd "

	tests := []struct{ name, bucket, key, value, want string }{
		{"newer storage", "meta", "storageVersion", "3.8.0", refused + "3.8, this one has 3.7)"},
		{"newer major", "meta", "storageVersion", "4.0.0", refused + "4.0,"},
		{"newer cluster", "cluster", "clusterVersion", "3.8.0", refused + "3.8,"},
		{"patch release", "meta", "storageVersion", "3.7.99", ""},
		{"older storage", "meta", "storageVersion", "3.6.0", ""},
		{"nonsense", "meta", "storageVersion", "new", `storageVersion of the database is "new", which is no version`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			stop(t, start(t, dir))
			writeRaw(t, dir, test.bucket, test.key, test.value)

			server, err := embeddedetcd.Start(t.Context(), dir)

			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "":
				stop(t, server)
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestNewerObjects(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)

	if value, _ := get(t, connect(t, server), snapshot.DataVersionKey); value != strconv.Itoa(snapshot.DataVersion) {
		t.Errorf("a new etcd has data version %q", value)
	}

	put(t, connect(t, server), snapshot.DataVersionKey, strconv.Itoa(snapshot.DataVersion+1))
	stop(t, server)

	if _, err := embeddedetcd.Start(t.Context(), dir); !errors.Is(err, snapshot.ErrNewerData) {
		t.Errorf("got %v", err)
	}
}

// TestDamagedDatabase: etcd itself would end the process.
func TestDamagedDatabase(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))
	write(t, filepath.Join(dir, "member", "snap", "db"), []byte(strings.Repeat("damage", 10_000)))

	if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "omni-apiserver snapshot restore") {
		t.Errorf("got %v", err)
	}
}
