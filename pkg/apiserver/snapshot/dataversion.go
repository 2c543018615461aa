package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// DataVersionKey is where the version lies in etcd: outside of the prefix of the objects, as a decimal number.
	DataVersionKey = "omni-apiserver-data-version"
	// DataVersion is the version that this program writes. Version 1 is every object as JSON of v1alpha1. Raise it when
	// programs of the previous version could no longer read what is written.
	DataVersion = 1

	requestTimeout = 10 * time.Second
)

// ErrNewerData is wrapped by the errors of CheckDataVersion and RefuseDataVersion for data of a newer program.
var ErrNewerData = errors.New("the stored objects were written by a newer omni-apiserver")

// ParseDataVersion reads the value of DataVersionKey.
func ParseDataVersion(value []byte) (int, error) {
	version, err := strconv.Atoi(string(value))
	if err != nil || version < 1 {
		return 0, fmt.Errorf("%q is no data version", value)
	}

	return version, nil
}

// RefuseDataVersion returns an error that says what to do if the version is above DataVersion.
func RefuseDataVersion(version int) error {
	if version <= DataVersion {
		return nil
	}

	return fmt.Errorf("%w: they have data version %d, this program knows up to %d: "+
		"run the newer omni-apiserver, or restore a snapshot from before its upgrade", ErrNewerData, version, DataVersion)
}

// CheckDataVersion reads the version from an etcd, and raises it to DataVersion if it is lower or missing. The error wraps ErrNewerData
// if this program must not use the data. A full etcd, which refuses the write, is no error: the next start writes the
// version.
func CheckDataVersion(ctx context.Context, client clientv3.KV) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	found, err := client.Get(ctx, DataVersionKey)
	if err != nil {
		return fmt.Errorf("read the data version: %w", err)
	}

	stored := 0

	if len(found.Kvs) > 0 {
		if stored, err = ParseDataVersion(found.Kvs[0].Value); err != nil {
			return fmt.Errorf("read the data version at key %s: %w", DataVersionKey, err)
		}
	}

	if stored == DataVersion {
		return nil
	}

	if err := RefuseDataVersion(stored); err != nil {
		return err
	}

	if _, err := client.Put(ctx, DataVersionKey, strconv.Itoa(DataVersion)); err != nil && !strings.Contains(err.Error(), rpctypes.ErrNoSpace.Error()) {
		return fmt.Errorf("write the data version: %w", err)
	}

	return nil
}
