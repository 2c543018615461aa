package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

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
