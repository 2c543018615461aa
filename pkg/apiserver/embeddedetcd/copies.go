package embeddedetcd

import (
	"errors"
	"os"
	"path/filepath"
)

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
