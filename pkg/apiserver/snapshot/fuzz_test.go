package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// smallDatabase is the file of an etcd database with one key.
func smallDatabase(t testing.TB) []byte {
	t.Helper()

	return databaseOf(t, nil, func(keys *bolt.Bucket) error {
		return keys.Put([]byte("\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00"), []byte{0x0a, 1, 'a'})
	})
}

// databaseOf is the file of an etcd database with the keys that fill puts into it.
func databaseOf(t testing.TB, options *bolt.Options, fill func(keys *bolt.Bucket) error) []byte {
	t.Helper()

	path := filepath.Join(t.TempDir(), "db")

	db, err := bolt.Open(path, 0o600, options)
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Update(func(tx *bolt.Tx) error {
		for _, bucket := range [][]byte{schema.Key.Name(), schema.Meta.Name()} {
			if _, err := tx.CreateBucket(bucket); err != nil {
				return err
			}
		}

		return fill(tx.Bucket(schema.Key.Name()))
	}); err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return content
}

// damage overwrites a part of a snapshot, or makes it longer.
func damage(content []byte, at int, change []byte) []byte {
	damaged := slices.Clone(content)
	if at = max(0, at) % (len(damaged) + 1); len(change) > len(damaged)-at {
		return append(damaged[:at], change...)
	}

	copy(damaged[at:], change)

	return damaged
}

// FuzzInspect damages a snapshot: the checksum shows it, and nothing of the database is looked at.
func FuzzInspect(f *testing.F) {
	database := smallDatabase(f)
	sum := sha256.Sum256(database)
	whole := append(database, sum[:]...)

	f.Add(0, []byte(nil))
	f.Add(len(whole), []byte("more"))
	f.Add(len(whole)-1, []byte("\x00"))
	f.Add(len(whole), make([]byte, 512))
	f.Add(16393, []byte{0xff})

	f.Fuzz(func(t *testing.T, at int, change []byte) {
		content := damage(whole, at, change)
		path := filepath.Join(t.TempDir(), "snapshot.db")

		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}

		foreigntest.WantAllocated(t, 64<<20, func() {
			if _, err := snapshot.Inspect(path); (err == nil) != bytes.Equal(content, whole) {
				t.Errorf("damaged: %t, and %v", !bytes.Equal(content, whole), err)
			}
		})
	})
}

// Somebody who makes a checksum that fits damaged pages gets an error, not a stack trace.
func TestInspectDamagedPages(t *testing.T) {
	database := smallDatabase(t)

	var refused []string

	for page := 3; page < len(database)/os.Getpagesize(); page++ {
		damaged := damage(database, page*os.Getpagesize()+8, bytes.Repeat([]byte{0xff}, 8))
		sum := sha256.Sum256(damaged)
		path := filepath.Join(t.TempDir(), "snapshot.db")

		if err := os.WriteFile(path, append(damaged, sum[:]...), 0o600); err != nil {
			t.Fatal(err)
		}

		if _, err := snapshot.Inspect(path); err != nil {
			refused = append(refused, err.Error())
		}
	}

	// The other pages are free.
	if len(refused) == 0 || !strings.Contains(refused[0], "damaged, although its checksum fits") {
		t.Errorf("%q", refused)
	}
}
