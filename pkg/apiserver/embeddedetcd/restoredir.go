package embeddedetcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

const (
	// unfinishedDir has all that a restore makes until it is in place. Beside no data it says that there
	// should be some.
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

// refuseForeignDirectory looks for anything that is neither ours nor what file systems bring along. What
// people have put into a directory of ours does not matter.
func refuseForeignDirectory(dataDir string) error {
	if hasData(dataDir) || exists(filepath.Join(dataDir, lockName)) {
		return nil
	}

	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("look into the etcd data directory: %w", err)
	}

	for _, entry := range entries {
		name := entry.Name()
		if !slices.Contains([]string{SnapshotsDir, unfinishedDir, "lost+found"}, name) &&
			!strings.HasPrefix(name, replacedPrefix) && !snapshot.IsUnfinished(name) {
			return fmt.Errorf("%s is no etcd data directory, it contains %q: give an empty directory", dataDir, name)
		}
	}

	return nil
}

// begin makes the place where a restore works, on disk before anything else, without what an earlier
// one has left there.
func begin(dataDir string) (string, error) {
	unfinished := filepath.Join(dataDir, unfinishedDir)
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("remove what an earlier restore left: %w", err)
	}

	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return "", fmt.Errorf("begin the restore: %w", err)
	}

	return unfinished, syncDirectory(dataDir)
}

// giveUp removes what a restore that failed has made. Where there is no data, the empty directory stays
// for refuseUnfinished.
func giveUp(dataDir string) error {
	unfinished := filepath.Join(dataDir, unfinishedDir)
	if err := os.RemoveAll(unfinished); err != nil || hasData(dataDir) {
		return err // says it all
	}

	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return err // says it all
	}

	return fmt.Errorf("%s has no data now, and omni-apiserver will not start on it: repeat the restore with a good snapshot, "+
		"or remove %s to start without any object", dataDir, unfinished)
}

// refuseUnfinished keeps a server from starting empty where a restore has not come to its end. What is
// left beside data, old or restored, is removed.
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

// roomToUnpack fails if the disk would fill up on the way.
func roomToUnpack(dataDir string, size int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dataDir, &disk); err != nil {
		return fmt.Errorf("ask for the free space of %s: %w", dataDir, err)
	}

	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert,gosec // the types differ between systems; no disk is that large
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

		return syncDirectory(path)
	})
}

func syncDirectory(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open a directory: %w", err)
	}
	defer file.Close()

	if err := file.Sync(); err != nil {
		return fmt.Errorf("write a directory to disk: %w", err)
	}

	return nil
}
