package embeddedetcd

import (
	"errors"
	"os"
	"path/filepath"
)

// removeCopies removes what defragmentations of killed processes have left: copies of the database that
// were not finished. etcd leaves them alone when it starts, and a volume that is too small for a
// defragmentation, or a container that has too little memory for one, would fill up with them.
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
