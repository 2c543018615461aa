package embeddedetcd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coreos/go-semver/semver"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// openTimeout is how long the database may be locked by another etcd. It cannot be another omni-apiserver: this
// process holds our own lock.
const openTimeout = 5 * time.Second

func databasePath(dataDir string) string { return filepath.Join(dataDir, memberDir, "snap", "db") }

// opener opens a file to be read. Tests have one whose disk fails.
type opener func(path string) (io.ReadCloser, error)

func openFile(path string) (io.ReadCloser, error) { return os.Open(path) }

// readDatabase reads the file of the database from its beginning to its end, before bbolt maps it into memory. It is for
// two reasons. A mapped page that the disk does not give is a fault, which looks like a damaged database; here it is an
// error of the disk. And bbolt tells the kernel not to read ahead: from a slow disk, page after page would take minutes.
func readDatabase(ctx context.Context, path string, open opener) error {
	file, err := open(path)
	if errors.Is(err, syscall.EIO) {
		return notRead(err)
	}

	if err != nil {
		return cannotOpen(path, err)
	}
	defer file.Close()

	_, err = io.Copy(io.Discard, contextReader{ctx, file})

	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("read the database: %w", context.Cause(ctx))
	case err != nil:
		return notRead(err)
	}

	return nil
}

func notRead(reason error) error { return fmt.Errorf("read the database: %w: %s", reason, diskFails) }

// contextReader reads until the context ends.
type contextReader struct {
	ctx  context.Context //nolint:containedctx // of one call
	from io.Reader
}

func (r contextReader) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}

	return r.from.Read(into)
}

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

// refuseNewerThan compares the versions in the database with that of the etcd in this program. Only
// major and minor count: patch releases share a format.
func refuseNewerThan(tx *bolt.Tx, program string) error {
	own, err := semver.NewVersion(program)
	if err != nil {
		return fmt.Errorf("parse the version of etcd: %w", err)
	}

	for _, place := range []struct{ bucket, key []byte }{
		{schema.Meta.Name(), schema.MetaStorageVersionName},
		{schema.Cluster.Name(), schema.ClusterClusterVersionKeyName},
	} {
		bucket := tx.Bucket(place.bucket)
		if bucket == nil {
			continue
		}

		text := string(bucket.Get(place.key))
		if text == "" {
			continue
		}

		stored, err := semver.NewVersion(text)
		if err != nil {
			return fmt.Errorf("%s of the database is %q, which is no version: %w", place.key, text, err)
		}

		if own.Major < stored.Major || own.Major == stored.Major && own.Minor < stored.Minor {
			return fmt.Errorf("the data directory was used by a newer omni-apiserver (etcd %d.%d, this one has %d.%d): "+
				"run that version again, or restore a snapshot from before its upgrade into an empty directory",
				stored.Major, stored.Minor, own.Major, own.Minor)
		}
	}

	return nil
}

// refuseLostData keeps a server from starting empty if snapshots say that there were objects: after the loss of a
// volume, or with a volume that is not mounted. The hub's garbage collector would remove what has an owner
// reference to a missing object, and snapshots of the empty server would replace the good ones.
func refuseLostData(dataDir, snapshots string) error {
	if snapshots == "" || hasContent(dataDir) {
		return nil
	}

	newest, info, err := newestSnapshot(snapshots)
	if err != nil || newest == "" {
		return err
	}

	content := "damaged, as it seems"

	if info != nil {
		objects := 0
		for _, count := range info.Objects {
			objects += count
		}

		if objects == 0 {
			return nil
		}

		content = fmt.Sprintf("with %d objects", objects)
	}

	command := fmt.Sprintf("omni-apiserver snapshot restore %s --etcd-data-dir=%s", newest, dataDir)
	if hasData(dataDir) {
		command += " --replace" // what is left of it goes aside
	}

	return fmt.Errorf("there is no data, but a snapshot of it, %s, %s: is the right volume mounted? If the data is lost, restore it "+
		"(%s), or move the snapshots away to start without any object", newest, content, command)
}

// newestSnapshot returns the newest snapshot in a directory, and what it contains; nothing of that if it is damaged.
func newestSnapshot(snapshots string) (string, *snapshot.Info, error) {
	found, err := snapshot.InDirectory(snapshots)
	if err != nil || len(found) == 0 {
		return "", nil, err
	}

	newest := found[len(found)-1].Path

	info, err := snapshot.Inspect(newest)
	if err != nil {
		return newest, nil, nil //nolint:nilerr // the start needs no good one
	}

	return newest, info, nil
}

// hasContent reports whether there is a database or a log that etcd would go on with. Beside an empty directory, as it is
// left when somebody or a repair of the file system removed the files, etcd begins anew. So it does with the empty
// database of a very first start that was killed.
func hasContent(dataDir string) bool {
	if wal.Exist(filepath.Join(dataDir, memberDir, "wal")) {
		return true
	}

	info, err := os.Stat(databasePath(dataDir))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) // what cannot be read is not lost
	}

	return info.Size() > 0
}

// lastRevision returns the last revision in the database of the directory; 0 if none can be read, since restores are
// also for damaged databases. Restores take revisions from the clock; the clock may have been set back since an
// earlier restore, so the clock alone is not enough.
//
// The last changes leave no trace if they were deletions and were compacted; etcd goes on from the compaction then.
func lastRevision(dataDir string) int64 {
	revision := int64(0)

	err := snapshot.View(databasePath(dataDir), openTimeout, func(tx *bolt.Tx) error {
		if keys := tx.Bucket(schema.Key.Name()); keys != nil {
			if last, _ := keys.Cursor().Last(); last != nil {
				revision = mvcc.BytesToRev(last).Main
			}
		}

		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			if compacted := meta.Get(schema.ScheduledCompactKeyName); compacted != nil {
				revision = max(revision, mvcc.BytesToRev(compacted).Main)
			}
		}

		return nil
	})
	if err != nil {
		return 0
	}

	return revision
}
