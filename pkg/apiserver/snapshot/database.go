package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
)

// DamagedPage is the error of a database with a page that bbolt cannot read, or with keys out of order.
type DamagedPage struct{ reason any }

// Error implements error.
func (p DamagedPage) Error() string { return fmt.Sprint(p.reason) }

// View reads a database that no etcd uses. timeout is how long another process may hold its lock. The error is that of
// opening the file, the function's own, or a DamagedPage.
//
// On a damaged page bbolt panics, or follows a pointer beyond the end of the file. A page that left the memory, and
// that the disk does not give again, is the same fault. Only faults of this goroutine are caught, so view starts no other
// one that reads.
func View(path string, timeout time.Duration, view func(*bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = DamagedPage{reason}
		}
	}()

	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: timeout})
	if err != nil {
		return err
	}
	defer db.Close()

	return db.View(view)
}

// ForEach reads every page that has keys, in their order. begin is called with the name of each bucket, and returns what
// is called with its keys and values. What these are given, they may not keep.
func ForEach(ctx context.Context, tx *bolt.Tx, begin func(bucket []byte) func(key, value []byte) error) error {
	return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		var previous []byte

		visit, cursor := begin(name), bucket.Cursor()
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			// bbolt does not look at the order. A bucket in the bucket, which has no value, is not etcd's.
			if value == nil || previous != nil && bytes.Compare(previous, key) >= 0 {
				return DamagedPage{fmt.Sprintf("bucket %s: keys are not in order", name)}
			}

			if err := ctx.Err(); err != nil { // a large database takes some seconds
				return err
			}

			if err := visit(key, value); err != nil {
				return err
			}

			previous = key
		}

		return nil
	})
}
