package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// memberDir is the directory in which etcd keeps all its files.
	memberDir = "member"
	// replacedPrefix begins the names of data that a restore has put aside.
	replacedPrefix = "replaced-"
	// SnapshotsDir is the default directory of scheduled snapshots, inside the data directory.
	SnapshotsDir = "snapshots"

	clusterToken = "omni-apiserver"
	// minRevisionBump is how much higher the revision is after a restore, at the least: 17 minutes of the clock.
	minRevisionBump = 1_000_000_000
)

// ErrForeign is wrapped by Restore's error for a snapshot that has no objects of omni-apiserver.
var ErrForeign = errors.New("the snapshot has nothing of omni-apiserver in it")

// Restored says what a restore did.
type Restored struct {
	// Snapshot is what was restored.
	Snapshot *snapshot.Info
	// Revision is the revision that the restored etcd starts at.
	Revision int64
	// Replaced is the directory that the previous data was moved to; empty if there was none.
	Replaced string
}

// Restore makes the data directory from a snapshot. The directory must have no data, unless replace is true: then the
// old data is moved into a directory beside it, which nothing ever removes. No server may run on the directory.
//
// A rename puts the new data in place at once. If the process dies or fails before that, the old data is untouched;
// if there was no old data, Start refuses the directory and says that the restore has to be repeated.
//
// Restore raises the revision above any that was ever handed out, and marks everything before as compacted. Clients
// that continue from a resourceVersion of the lost time get "410 Gone" and list again, instead of silently missing
// changes.
func Restore(dataDir, path string, replace bool, now time.Time) (*Restored, error) {
	// A mistyped argument fails here, before anything is written to the directory.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no snapshot", path), err)
	}

	return restoreInto(dataDir, replace, now, func(string) (*snapshot.Info, error) { return inspectOurs(path) })
}

// RestoreStream restores a snapshot from a reader, such as standard input. It first checks that the directory is fit
// for a restore, so that nothing is written beside a running server. Then it receives the snapshot into the data
// directory, which needs room for it twice.
func RestoreStream(dataDir string, from io.Reader, replace bool, now time.Time) (*Restored, error) {
	return restoreInto(dataDir, replace, now, func(unfinished string) (*snapshot.Info, error) {
		path, err := snapshot.Receive(from, unfinished)
		if err != nil {
			return nil, err
		}

		return inspectOurs(path)
	})
}

// restoreInto fetches a snapshot, into the directory it is given or from elsewhere, and restores it.
func restoreInto(dataDir string, replace bool, now time.Time, fetch func(string) (*snapshot.Info, error)) (_ *Restored, err error) {
	if dataDir, err = filepath.Abs(dataDir); err != nil {
		return nil, fmt.Errorf("find the etcd data directory: %w", err)
	}

	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the etcd data directory: %w", err)
	}

	lock, err := lockDirectory(dataDir)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, lock.release()) }()

	if hasData(dataDir) && !replace {
		return nil, fmt.Errorf("%s has data already, and a restore never overwrites any: give another --etcd-data-dir, "+
			"or --replace to put the data aside into %s", dataDir, filepath.Join(dataDir, replacedPrefix+"<time>"))
	}

	unfinished, err := begin(dataDir)
	if err != nil {
		return nil, err
	}

	result, err := unpackAndSwap(dataDir, unfinished, now, fetch)
	if err != nil {
		return nil, errors.Join(err, giveUp(dataDir))
	}

	if err := os.RemoveAll(unfinished); err != nil {
		return result, fmt.Errorf("the restore is complete; clean up after it: %w", err)
	}

	return result, nil
}

func unpackAndSwap(dataDir, unfinished string, now time.Time, fetch func(string) (*snapshot.Info, error)) (*Restored, error) {
	info, err := fetch(unfinished)
	if err != nil {
		return nil, err
	}

	if err := roomToUnpack(dataDir, info.Size); err != nil {
		return nil, err
	}

	// No server writes more than once a microsecond, so the clock is above what an earlier restore handed out, also if that
	// data is gone, unless the clock was set back. It is below 2^53, as clients may expect that read a resourceVersion as a number.
	revision := max(info.Revision+minRevisionBump, lastRevision(dataDir)+minRevisionBump, now.UnixMicro())
	unpacked := filepath.Join(unfinished, "data")

	if err := unpack(info.Path, unpacked, uint64(revision-info.Revision)); err != nil { //nolint:gosec // the larger one, see above
		return nil, fmt.Errorf("unpack the snapshot: %w", err)
	}

	replaced, err := putInPlace(dataDir, unpacked, now)
	if err != nil {
		return nil, err
	}

	return &Restored{Snapshot: info, Revision: revision, Replaced: replaced}, nil
}

// inspectOurs refuses snapshots that this program could not serve from.
func inspectOurs(path string) (*snapshot.Info, error) {
	info, err := snapshot.Inspect(path)
	if err != nil {
		return nil, err
	}

	if err := snapshot.RefuseDataVersion(info.DataVersion); err != nil {
		return nil, err
	}

	// A snapshot of an external etcd has our objects, but not always our data version.
	if info.DataVersion == 0 && len(info.Objects) == 0 {
		return nil, fmt.Errorf("%w, but %d keys of other programs: %s may be of another etcd, such as that of kube-apiserver", ErrForeign, info.Keys, path)
	}

	return info, nil
}

func unpack(path, to string, bump uint64) error {
	log, err := newLogger(to)
	if err != nil {
		return err
	}

	if err := etcdsnapshot.NewV3(log.zap).Restore(etcdsnapshot.RestoreConfig{
		SnapshotPath:        path,
		Name:                memberName,
		OutputDataDir:       to,
		PeerURLs:            []string{peerURL},
		InitialCluster:      memberName + "=" + peerURL,
		InitialClusterToken: clusterToken,
		RevisionBump:        bump,
		MarkCompacted:       true,
	}); err != nil {
		return err
	}

	if err := refuseUnusable(context.Background(), to, openFile); err != nil {
		return err
	}

	return syncTree(to)
}

// putInPlace swaps old and new data by two renames. Between them the directory has no data, which Start refuses.
func putInPlace(dataDir, unpacked string, now time.Time) (replaced string, err error) {
	member := filepath.Join(dataDir, memberDir)

	if hasData(dataDir) {
		replaced = filepath.Join(dataDir, replacedPrefix+now.UTC().Format(words.TimeInNames))
		if err := os.Rename(member, replaced); err != nil {
			return "", fmt.Errorf("put the data of before aside: %w", err)
		}
	}

	if err := os.Rename(filepath.Join(unpacked, memberDir), member); err != nil {
		err = fmt.Errorf("put the restored data in place: %w", err)
		if replaced != "" {
			err = errors.Join(err, os.Rename(replaced, member))
		}

		return "", err
	}

	return replaced, disk.SyncDirectory(dataDir)
}

const (
	// unfinishedDir holds everything that a restore writes before the final renames. If it exists and there is no
	// data, a restore was interrupted.
	unfinishedDir = "restore.unfinished"
	// logSpace is what a new etcd's log takes on the disk at the least, in bytes: the file it writes and
	// the next one.
	logSpace = 128 << 20
)

func hasData(dataDir string) bool { return exists(filepath.Join(dataDir, memberDir)) }

func exists(path string) bool {
	_, err := os.Lstat(path)

	return err == nil
}

// begin makes the working directory of a restore and syncs it to disk before anything else is written. It removes
// what an earlier restore left there.
func begin(dataDir string) (string, error) {
	unfinished := filepath.Join(dataDir, unfinishedDir)
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("remove what an earlier restore left: %w", err)
	}

	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return "", fmt.Errorf("begin the restore: %w", err)
	}

	return unfinished, disk.SyncDirectory(dataDir)
}

// giveUp removes what a failed restore wrote. If there is no data, the empty working directory stays, so that
// refuseUnfinished finds it.
func giveUp(dataDir string) error {
	unfinished := filepath.Join(dataDir, unfinishedDir)
	if err := os.RemoveAll(unfinished); err != nil || hasData(dataDir) {
		return err
	}

	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return err
	}

	return fmt.Errorf("%s has no data now, and omni-apiserver will not start on it: repeat the restore with a good snapshot, "+
		"or remove %s to start without any object", dataDir, unfinished)
}

// refuseUnfinished keeps a server from starting empty after an interrupted restore. If there is data, old or
// restored, it removes the leftovers of the restore instead.
func refuseUnfinished(dataDir string) error {
	unfinished := filepath.Join(dataDir, unfinishedDir)
	if !exists(unfinished) {
		return nil
	}

	if hasData(dataDir) {
		if err := os.RemoveAll(unfinished); err != nil {
			return fmt.Errorf("remove what a restore left: %w", err)
		}

		return nil
	}

	remedy := "run omni-apiserver snapshot restore again"

	if replaced, _ := filepath.Glob(filepath.Join(dataDir, replacedPrefix+"*")); len(replaced) > 0 {
		remedy += fmt.Sprintf("; or, to go back, rename %s, which may be the data of before, to %s",
			replaced[len(replaced)-1], filepath.Join(dataDir, memberDir))
	}

	return fmt.Errorf("a restore into %s did not finish: %s; or, to start without any object, remove %s", dataDir, remedy, unfinished)
}

// roomToUnpack fails if the restore would fill up the disk.
func roomToUnpack(dataDir string, size int64) error {
	free, err := disk.Free(dataDir)
	if err != nil {
		return err
	}

	if needed := size + logSpace; free < needed {
		return fmt.Errorf("%s has %d bytes free, the restored database and its log need %d: enlarge the volume, "+
			"or remove what nobody needs there, such as old snapshots and %s<time>", dataDir, free, needed, replacedPrefix)
	}

	return nil
}

// syncTree writes directories to disk; etcd has done so with the files.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error { // our own errors
		if err != nil || !entry.IsDir() {
			return err
		}

		return disk.SyncDirectory(path)
	})
}

const lockName = "omni-apiserver.lock"

// directoryLock is held for the life of the process; the kernel releases it even after a kill. etcd locks its
// database too, but waits for that lock silently instead of saying which process holds it.
type directoryLock struct{ file *os.File }

func lockDirectory(dir string) (*directoryLock, error) {
	path := filepath.Join(dir, lockName)

	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the etcd data directory: %w", err)
	}

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()

		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another omni-apiserver uses the etcd data directory %s: "+
				"stop it, or give this one a directory of its own", dir)
		}

		return nil, fmt.Errorf("lock the etcd data directory: %w", err)
	}

	return &directoryLock{file: file}, nil
}

// release lets the next process take the lock. The file stays: if it were removed, two processes could lock two
// different files of the same name.
func (l *directoryLock) release() error {
	if l.file == nil {
		return nil
	}

	file := l.file
	l.file = nil

	if err := file.Close(); err != nil {
		return fmt.Errorf("unlock the etcd data directory: %w", err)
	}

	return nil
}

// removeCopies removes unfinished copies of the database, which defragmentations leave behind when the process is
// killed. etcd does not remove them when it starts. A volume that is too small for a defragmentation, or a container
// with too little memory for one, would fill up with them.
func removeCopies(dataDir string) error { return removeAll(databasePath(dataDir) + ".tmp.*") }

// removeTornLogs removes the copies that etcd makes of a file of its log before it cuts off a torn end, such as that of a
// write in whose middle the process was killed. etcd never reads or removes them, and each is as large as such a file, 64
// MB. Before etcd serves from the mended log, they may be all that there is.
func removeTornLogs(dataDir string) error {
	return removeAll(filepath.Join(dataDir, memberDir, "wal", "*.wal.broken"))
}

func removeAll(pattern string) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}

	var errs []error
	for _, path := range found {
		errs = append(errs, os.Remove(path))
	}

	return errors.Join(errs...)
}
