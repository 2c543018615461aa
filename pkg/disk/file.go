package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile writes the complete file or none, and returns when the file is on the disk: at every moment the file of before or
// the new one is there. Only the user may read it.
func WriteFile(path string, text []byte) error {
	dir := filepath.Dir(path)

	temporary, err := os.CreateTemp(dir, ".omni-unfinished-*") // its mode is 0600
	if err != nil {
		return err
	}

	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Sync())

	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}

	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}

	return SyncDirectory(dir)
}
