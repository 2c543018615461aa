package embeddedetcd

import (
	"errors"
	"os"
	"path/filepath"
)

// removeCopies removes unfinished copies of the database, which defragmentations leave behind when the process is
// killed. etcd does not remove them when it starts. A volume that is too small for a defragmentation, or a container
// with too little memory for one, would fill up with them.
func removeCopies(dataDir string) error {
	copies, err := filepath.Glob(databasePath(dataDir) + ".tmp.*")
	if err != nil {
		return err // names the pattern
	}

	var errs []error
	for _, path := range copies {
		errs = append(errs, os.Remove(path))
	}

	return errors.Join(errs...)
}
