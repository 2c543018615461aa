package embeddedetcd

import (
	"fmt"
	"os"
	"path/filepath"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

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
