// Package snapshot takes snapshots of a running etcd, inspects snapshots, and maintains a directory of scheduled
// ones.
//
// A snapshot is the file that etcd's own tools write and read: the database at one revision, followed by its SHA-256
// checksum. A file gets its name only when it is complete and synced to disk. So every file in a directory of
// snapshots is either good or was damaged later, which the checksum shows.
//
// The data version (DataVersion) says how to read the stored objects. It lies in etcd beside them, so that snapshots carry it. A
// program that finds a higher version than its own does not serve: it would treat data that it cannot read as damaged, or drop
// fields that it does not know with the next write. etcd's storage version is a different number: it is about the format of the
// database, not about the objects.
package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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

// unfinishedStart is the prefix of the names of files that are being written. Such a file lies in the directory
// of the snapshot it becomes, because a rename does not cross file systems.
const unfinishedStart = ".omni-snapshot-unfinished-"

// createUnfinished creates a file that becomes a snapshot. The file is locked while it is open, so that other
// processes see that somebody writes it; the kernel releases the lock when the process is killed. The lock is a shared
// one, so that bbolt can open the file before it gets its name.
func createUnfinished(dir string) (*os.File, error) {
	if err := removeAbandoned(dir); err != nil {
		return nil, err
	}

	file, err := os.CreateTemp(dir, unfinishedStart+"*")
	if err != nil {
		return nil, fmt.Errorf("make a file for the snapshot: %w", err)
	}

	// Some network file systems have no locks. At worst, two processes that save into one directory at the same time
	// disturb each other, and one of them fails.
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)

	return file, nil
}

// removeAbandoned removes what killed processes were writing.
func removeAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for unfinished snapshots: %w", err)
	}

	var errs []error

	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinishedStart) && entry.Type().IsRegular() {
			errs = append(errs, removeIfAbandoned(filepath.Join(dir, entry.Name())))
		}
	}

	return errors.Join(errs...)
}

func removeIfAbandoned(path string) error {
	file, err := os.Open(path)
	if err != nil { // gone, or of another user
		return nil
	}
	defer file.Close()

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an unfinished snapshot: %w", err)
	}

	return nil
}

// pageUnit divides the size of every database. The remainder of a snapshot's size is its checksum.
const pageUnit = 512

var (
	errNoChecksum = errors.New("there is no checksum at the end: this is not a whole snapshot " +
		"(a database that was copied out of a data directory has none either)")
	errPages    = errors.New("the pages of its database are damaged, although its checksum fits")
	errChecksum = errors.New("the checksum does not match: the snapshot is damaged")
)

// checked passes a snapshot on to a writer and computes the checksum of all but its last bytes, which are the
// checksum that etcd computed.
type checked struct {
	to   io.Writer
	sum  hash.Hash
	tail []byte
	size int64
}

func newChecked(to io.Writer) *checked { return &checked{to: to, sum: sha256.New()} }

// Write implements io.Writer.
func (c *checked) Write(data []byte) (int, error) {
	n, err := c.to.Write(data)
	c.size += int64(n)
	c.tail = append(c.tail, data[:n]...)

	if surplus := len(c.tail) - sha256.Size; surplus > 0 {
		c.sum.Write(c.tail[:surplus])
		c.tail = append(c.tail[:0], c.tail[surplus:]...)
	}

	return n, err
}

// verify returns an error unless the bytes written so far are a complete snapshot.
func (c *checked) verify() error {
	if c.size%pageUnit != sha256.Size {
		return errNoChecksum
	}

	if !bytes.Equal(c.sum.Sum(nil), c.tail) {
		return errChecksum
	}

	return nil
}

// Verify reads the whole file and compares its checksum. It says nothing about what the database
// contains.
func Verify(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the snapshot: %w", err)
	}
	defer file.Close()

	c := newChecked(io.Discard)
	if _, err := io.Copy(c, file); err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}

	if err := c.verify(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	return nil
}

// spareSpace must remain free on the disk of an etcd beside the database's size, in bytes.
const spareSpace = 128 << 20

// errNoSpace is the error of a disk that has too little room.
var errNoSpace = errors.New("no space")

// CheckSpace fails if a snapshot of the etcd does not fit into the directory, or would fill up the disk
// that the etcd writes to, which would end it. dataDir is the data directory of the etcd; empty if it
// is not on this machine. The client must have one endpoint.
func CheckSpace(ctx context.Context, client *clientv3.Client, dir, dataDir string) error {
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return fmt.Errorf("ask etcd for its size: %w", err)
	}

	free, err := disk.Free(dir)
	if err != nil {
		return err
	}

	needed, purpose := status.DbSize, ""
	if dataDir != "" && sameDisk(dir, dataDir) {
		needed += status.DbSize + spareSpace
		purpose = " so that etcd, on the same disk, can go on writing after it"
	}

	if free >= needed {
		return nil
	}

	return fmt.Errorf("%w: %s has %d bytes free, and %d are needed for a snapshot of up to %d bytes%s", errNoSpace, dir, free, needed, status.DbSize, purpose)
}

// sameDisk reports whether two directories are on one file system. It returns true if it cannot tell.
func sameDisk(a, b string) bool {
	first, err := device(a)
	if err != nil {
		return true
	}

	second, err := device(b)

	return err != nil || first == second
}

func device(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err // only whether there is one matters
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}

	return uint64(stat.Dev), nil //nolint:unconvert // the types differ between systems
}
