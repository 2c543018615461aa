package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

// Stream writes a snapshot of the etcd to a writer and returns its size in bytes. The client must have exactly one
// endpoint: the snapshot is a copy of that member. After an error, discard what was written. The context bounds the
// transfer, which takes about as long as copying the database file.
func Stream(ctx context.Context, client clientv3.Maintenance, to io.Writer) (int64, error) {
	response, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask etcd for a snapshot: %w", err)
	}
	defer response.Snapshot.Close()

	c := newChecked(to)
	if _, err := io.Copy(c, response.Snapshot); err != nil {
		return c.size, fmt.Errorf("copy the snapshot: %w", err)
	}

	if err := c.verify(); err != nil {
		return c.size, fmt.Errorf("what etcd sent is not usable: %w", err)
	}

	return c.size, nil
}

// Save writes a snapshot of the etcd into a file, readable by its owner only, and returns what it contains. The file
// appears under its name, or replaces the file of that name, only when the snapshot is complete, verified and synced
// to disk, and every page of its database was read: the checksum that etcd computes is of what it sends, damaged or not.
// After an error everything is as before. Save also removes unfinished files of killed processes from the directory.
func Save(ctx context.Context, client clientv3.Maintenance, path string) (*Info, error) {
	dir := filepath.Dir(path)

	// A rename would replace a device, or a link such as /dev/stdout.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file, but a %s: give the name of a file", path, kind(info.Mode()))
	}

	file, err := createUnfinished(dir)
	if err != nil {
		return nil, err
	}

	info, err := saveInto(ctx, client, file)

	// The file gets its name before it is closed, because closing unlocks it: an unlocked file under the old name
	// would look abandoned.
	if err == nil {
		info.Path = path
		err = os.Rename(file.Name(), path)
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the snapshot: %w", err), file.Close(), os.Remove(file.Name()))
	}

	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("close the snapshot: %w", err)
	}

	return info, disk.SyncDirectory(dir)
}

// saveInto writes a snapshot into an open file, and reads what was written.
func saveInto(ctx context.Context, client clientv3.Maintenance, file *os.File) (*Info, error) {
	if _, err := Stream(ctx, client, file); err != nil {
		return nil, err
	}

	if err := file.Sync(); err != nil {
		return nil, err
	}

	info, err := read(ctx, file.Name())
	if errors.Is(err, errPages) {
		return nil, fmt.Errorf("%w: so are those of etcd itself, as it seems. Snapshots from before stay as they are: restore one", err)
	}

	return info, err
}

func kind(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&os.ModeSymlink != 0:
		return "link"
	}

	return "device"
}
