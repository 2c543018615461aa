package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Receive writes a snapshot that comes from elsewhere, such as standard input, into a new file in the
// directory and returns its path. The caller removes it. It fails if the snapshot is not whole.
func Receive(from io.Reader, dir string) (string, error) {
	file, err := createUnfinished(dir)
	if err != nil {
		return "", err
	}

	c := newChecked(file)

	_, err = io.Copy(c, from)
	if err == nil {
		err = c.verify()
	}

	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("receive the snapshot (%d bytes came): %w", c.size, err), os.Remove(file.Name()))
	}

	return file.Name(), nil
}
