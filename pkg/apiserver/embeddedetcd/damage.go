package embeddedetcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// errOrder is damage that bbolt itself does not notice.
var errOrder = errors.New("keys are not in order")

// refuseUnusable looks at the database before etcd does, which ends the process from some goroutine of its own, or waits
// for other members that there are not. The error says that the database cannot be opened, that a newer etcd was the last
// to use it, that its log is gone or pages of it are damaged, and what to do.
//
// It reads every key once, as etcd does afterwards, and no large values: a database of 2 GiB takes seconds.
func refuseUnusable(dataDir string) (err error) {
	path := databasePath(dataDir)

	// An empty file is what remains if the very first start was killed.
	if info, err := os.Stat(path); os.IsNotExist(err) || err == nil && info.Size() == 0 {
		return nil
	}

	// bbolt panics over a damaged page, or follows it to where the file has nothing.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = damaged(path, fmt.Errorf("%v", reason))
		}
	}()

	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return fmt.Errorf("the database %s cannot be opened: %w: if it is damaged, restore a snapshot "+
			"(omni-apiserver snapshot restore --help)", path, err)
	}
	defer db.Close()

	return db.View(func(tx *bolt.Tx) error { // the function's own errors
		if err := refuseNewerThan(tx, version.Version); err != nil {
			return err
		}

		if err := refuseLostLog(tx, dataDir); err != nil {
			return err
		}

		if err := readKeys(tx); err != nil {
			return damaged(path, err)
		}

		return nil
	})
}

func damaged(path string, reason error) error {
	return fmt.Errorf("the database %s is damaged (%w): restore a snapshot (omni-apiserver snapshot restore --help)", path, reason)
}

// refuseLostLog finds a database with data beside which there is no log. etcd would take itself for a new member and wait
// until the other ones have elected a leader. A very first start that was killed leaves a database without data.
func refuseLostLog(tx *bolt.Tx, dataDir string) error {
	logs := filepath.Join(dataDir, memberDir, "wal")
	if wal.Exist(logs) {
		return nil
	}

	meta := tx.Bucket(schema.Meta.Name())
	if meta == nil {
		return nil
	}

	if index := meta.Get(schema.MetaConsistentIndexKeyName); len(index) != 8 || binary.BigEndian.Uint64(index) == 0 {
		return nil
	}

	return fmt.Errorf("the database has data, but its log is missing, there is no *.wal in %s: bring the files back if somebody "+
		"moved them, else restore a snapshot (omni-apiserver snapshot restore --help)", logs)
}

// readKeys reads every page that has keys.
func readKeys(tx *bolt.Tx) error {
	return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error { // the function's own errors
		var previous []byte

		cursor := bucket.Cursor()
		for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
			if previous != nil && bytes.Compare(previous, key) >= 0 {
				return fmt.Errorf("bucket %s: %w", name, errOrder)
			}

			previous = key
		}

		return nil
	})
}
