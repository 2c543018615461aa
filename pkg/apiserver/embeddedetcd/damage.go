package embeddedetcd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// refuseUnusable examines the database before etcd opens it. etcd would end the process from a goroutine of its own,
// or wait for other members that do not exist. The error says what to do, and which of these is the reason: the
// database cannot be opened, a newer etcd was the last to use it, its log is missing, or pages are damaged.
//
// It reads the file once, as fast as the disk is, and then every key, as etcd does afterwards.
func refuseUnusable(ctx context.Context, dataDir string, open opener) error {
	path := databasePath(dataDir)

	// A very first start that was killed leaves an empty file.
	if info, err := os.Stat(path); os.IsNotExist(err) || err == nil && info.Size() == 0 {
		return nil
	}

	if err := readDatabase(ctx, path, open); err != nil {
		return err
	}

	opened := false
	err := snapshot.View(path, openTimeout, func(tx *bolt.Tx) error {
		opened = true

		if err := refuseNewerThan(tx, version.Version); err != nil {
			return err
		}

		if err := refuseLostLog(tx, dataDir); err != nil {
			return err
		}

		return snapshot.ForEach(ctx, tx, func([]byte) func(key, value []byte) error {
			return func([]byte, []byte) error { return nil }
		})
	})

	switch page := (snapshot.DamagedPage{}); {
	case errors.As(err, &page): // it may be one that the disk does not give again
		return cmp.Or(readDatabase(ctx, path, open), damaged(path, page))
	case ctx.Err() != nil:
		return fmt.Errorf("read the database: %w", context.Cause(ctx))
	case err != nil && !opened:
		return cannotOpen(path, err)
	}

	return err
}

func cannotOpen(path string, reason error) error {
	return fmt.Errorf("the database %s cannot be opened: %w: if it is damaged, restore a snapshot "+
		"(omni-apiserver snapshot restore --help)", path, reason)
}

func damaged(path string, reason error) error {
	return fmt.Errorf("the database %s is damaged (%w): restore a snapshot (omni-apiserver snapshot restore --help)", path, reason)
}

// refuseLostLog returns an error for a database that has data but no log beside it. etcd would start as a new member
// and wait until the other members have elected a leader. A very first start that was killed leaves a database
// without data, which is no error.
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
