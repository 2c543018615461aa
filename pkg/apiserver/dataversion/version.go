package dataversion

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
	// Key is where the version lies in etcd: outside of the prefix of the objects, as a decimal number.
	Key = "omni-apiserver-data-version"
	// Current is the version that this program writes. Version 1 is every object as JSON of v1alpha1. Raise it when
	// programs of the previous version could no longer read what is written.
	Current = 1

	requestTimeout = 10 * time.Second
)

// ErrNewer is wrapped by the errors of Check and Refuse for data of a newer program.
var ErrNewer = errors.New("the stored objects were written by a newer omni-apiserver")

// Parse reads the value of Key.
func Parse(value []byte) (int, error) {
	version, err := strconv.Atoi(string(value))
	if err != nil || version < 1 {
		return 0, fmt.Errorf("%q is no data version", value)
	}

	return version, nil
}

// Refuse returns an error that says what to do if the version is above Current.
func Refuse(version int) error {
	if version <= Current {
		return nil
	}

	return fmt.Errorf("%w: they have data version %d, this program knows up to %d: "+
		"run the newer omni-apiserver, or restore a snapshot from before its upgrade", ErrNewer, version, Current)
}

// Check reads the version from an etcd, and raises it to Current if it is lower or missing. The error wraps ErrNewer
// if this program must not use the data. A full etcd, which refuses the write, is no error: the next start writes the
// version.
func Check(ctx context.Context, client clientv3.KV) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	found, err := client.Get(ctx, Key)
	if err != nil {
		return fmt.Errorf("read the data version: %w", err)
	}

	stored := 0

	if len(found.Kvs) > 0 {
		if stored, err = Parse(found.Kvs[0].Value); err != nil {
			return fmt.Errorf("read the data version at key %s: %w", Key, err)
		}
	}

	if stored == Current {
		return nil
	}

	if err := Refuse(stored); err != nil {
		return err
	}

	if _, err := client.Put(ctx, Key, strconv.Itoa(Current)); err != nil && !strings.Contains(err.Error(), rpctypes.ErrNoSpace.Error()) {
		return fmt.Errorf("write the data version: %w", err)
	}

	return nil
}
