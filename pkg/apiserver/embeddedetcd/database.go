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
