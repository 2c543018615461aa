package embeddedetcd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
)

// stored makes a data directory with some pages of keys.
func stored(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	server := start(t, dir)
	client := connect(t, server)

	for i := range 300 {
		put(t, client, fmt.Sprintf("key-%04d", i), strings.Repeat("x", 100))
	}

	stop(t, server)

	return dir
}

// TestLostLog: the error comes at once, and says what to do.
func TestLostLog(t *testing.T) {
	for name, lose := range map[string]func(logs string) error{
		"the directory": os.RemoveAll,
		"the files": func(logs string) error {
			return os.Rename(filepath.Join(logs, "0000000000000000-0000000000000000.wal"), filepath.Join(logs, "moved"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t)
			logs := filepath.Join(dir, "member", "wal")

			if err := lose(logs); err != nil {
				t.Fatal(err)
			}

			want := "its log is missing, there is no *.wal in " + logs + ": bring the files back if somebody moved them, else restore a snapshot " +
				"(omni-apiserver snapshot restore --help)"
			if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestKilledBeforeTheFirstLog: a very first start makes the database, then the log.
func TestKilledBeforeTheFirstLog(t *testing.T) {
	dir := t.TempDir()
	database := filepath.Join(dir, "member", "snap", "db")

	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		t.Fatal(err)
	}

	db, err := bolt.Open(database, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("meta"))

		return err
	}); err != nil {
		t.Fatal(err)
	}

	db.Close()
	stop(t, start(t, dir))
}

// TestDamagedPages: etcd would end the process with the stack of a goroutine of its own.
func TestDamagedPages(t *testing.T) {
	for name, damage := range map[string]func(page []byte){
		"empty page":            func(page []byte) { clear(page) },
		"another page's number": func(page []byte) { page[0] ^= 0xff },
		"a page far away":       func(page []byte) { copy(page[16:], "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00") },
		"keys out of order":     func(page []byte) { copy(page[16:32], page[32:48]) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t)
			database := filepath.Join(dir, "member", "snap", "db")
			root, size := rootOfKeys(t, database)

			whole := content(t, database)
			damage(whole[root*size : (root+1)*size])
			write(t, database, whole)

			got := lastWords(t, dir)
			if !strings.Contains(got, "the database "+database+" is damaged (") || !strings.Contains(got, "restore a snapshot (omni-apiserver snapshot restore --help)") {
				t.Errorf("it says:\n%s", got)
			}

			if strings.Contains(got, "goroutine ") {
				t.Errorf("a stack:\n%s", got)
			}
		})
	}
}

// rootOfKeys is the number of the branch page above all keys, and the size of a page.
func rootOfKeys(t *testing.T, database string) (page, size int) {
	t.Helper()

	db, err := bolt.Open(database, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	if err := db.View(func(tx *bolt.Tx) error {
		page, size = int(tx.Bucket([]byte("key")).Root()), db.Info().PageSize

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return page, size
}
