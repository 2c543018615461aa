package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Info is what a snapshot contains.
type Info struct {
	// Path is the file.
	Path string `json:"path"`
	// Written is when the file was last written. Copies may have another time than the original.
	Written time.Time `json:"written"`
	// Size is that of the file, in bytes.
	Size int64 `json:"size"`
	// Hash is etcd's own sum of the content, as etcdutl prints it. The file's SHA-256 was verified, too.
	Hash string `json:"hash"`
	// Revision is etcd's at the time of the snapshot: the resourceVersion of the last write.
	Revision int64 `json:"revision"`
	// Keys is the number of keys, those of other programs in the same etcd among them.
	Keys int `json:"keys"`
	// EtcdVersion is the storage version of etcd, such as 3.7.0.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// DataVersion is the version of our objects (see the constant DataVersion). 0: none of our servers wrote one.
	DataVersion int `json:"dataVersion"`
	// Objects is the number of our objects by resource, such as omniclusters.
	Objects map[string]int `json:"objects"`
	// Prefixes are the prefixes of these objects' keys: the --etcd-prefix of the server that stored them. A server
	// with another prefix does not see the objects.
	Prefixes []string `json:"prefixes,omitempty"`
}

// Inspect reads a snapshot. It fails if the file is not whole or was damaged.
func Inspect(path string) (*Info, error) {
	if err := Verify(path); err != nil {
		return nil, err
	}

	info, err := read(context.Background(), path)

	switch {
	case errors.Is(err, errPages):
		return nil, fmt.Errorf("read the snapshot %s: %w: take another snapshot", path, err)
	case err != nil:
		return nil, fmt.Errorf("read the snapshot %s: %w", path, err)
	}

	return info, nil
}

// lockTimeout is how long another process may hold the lock of a snapshot that is read.
const lockTimeout = time.Second

// The sizes of pages that are read. bbolt looks for none below 1 KiB. etcd's are as large as those of the machine: 4 KiB, or
// up to 64 KiB with Linux.
const minPageSize, maxPageSize = 1 << 10, 64 << 10

// read reads the database of a snapshot, every page of it that has keys. It keeps the keys in memory, as etcd does, and no
// value.
func read(ctx context.Context, path string) (*Info, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}

	info := &Info{Path: path, Written: stat.ModTime().UTC().Truncate(time.Second), Size: stat.Size()}

	err = View(path, lockTimeout, func(tx *bolt.Tx) error { return info.readFrom(ctx, tx) })
	if page := (DamagedPage{}); errors.As(err, &page) {
		return nil, errPages
	}

	return info, err
}

func (i *Info) readFrom(ctx context.Context, tx *bolt.Tx) error {
	// bbolt checks the sum of the page with these fields, but anybody can compute that.
	if size := tx.DB().Info().PageSize; size < minPageSize || size > maxPageSize || tx.Size() > i.Size {
		return errPages
	}

	if err := refuseOthers(tx); err != nil {
		return err
	}

	c := &content{sum: crc32.New(crc32.MakeTable(crc32.Castagnoli)), keys: map[string]struct{}{}}
	if err := ForEach(ctx, tx, c.begin); err != nil {
		return err
	}

	i.describe(c)

	if version := schema.ReadStorageVersionFromSnapshot(tx); version != nil {
		i.EtcdVersion = version.String()
	}

	return nil
}

// refuseOthers refuses databases of programs other than etcd.
func refuseOthers(tx *bolt.Tx) error {
	for _, bucket := range [][]byte{schema.Key.Name(), schema.Meta.Name()} {
		if tx.Bucket(bucket) == nil {
			return errors.New("it is a database, but not one of etcd")
		}
	}

	return nil
}

func (i *Info) describe(c *content) {
	i.Hash = fmt.Sprintf("%08x", c.sum.Sum32())
	i.Revision = c.revision
	i.Keys = len(c.keys)
	i.DataVersion = c.dataVersion
	i.Objects = map[string]int{}

	for key := range c.keys {
		object, ours := objectOf([]byte(key))
		if !ours {
			continue
		}

		i.Objects[object.resource]++

		if !slices.Contains(i.Prefixes, object.prefix) {
			i.Prefixes = append(i.Prefixes, object.prefix)
		}
	}

	slices.Sort(i.Prefixes)
}

// object is what the key of one of our objects says.
type object struct{ prefix, resource string }

// content collects what is in a database.
type content struct {
	sum         hash.Hash32 // as etcdutl computes it
	revision    int64
	keys        map[string]struct{} // at the last revision
	dataVersion int
}

// begin returns what to do with the keys of a bucket.
func (c *content) begin(bucket []byte) func(key, value []byte) error {
	changes := bytes.Equal(bucket, schema.Key.Name())

	c.sum.Write(bucket)

	return func(key, value []byte) error {
		c.sum.Write(key)
		c.sum.Write(value)

		if !changes {
			return nil
		}

		return c.add(key, value)
	}
}

// add applies one change, in the order of revisions.
func (c *content) add(revision, value []byte) error {
	c.revision = mvcc.BytesToRev(revision).Main // it panics if this is none

	var change mvccpb.KeyValue
	if err := proto.Unmarshal(value, &change); err != nil {
		return fmt.Errorf("decode a change: %w", err)
	}

	removed := mvcc.IsTombstone(revision)
	if removed {
		delete(c.keys, string(change.Key))
	} else {
		c.keys[string(change.Key)] = struct{}{}
	}

	switch {
	case string(change.Key) != DataVersionKey:
		return nil
	case removed:
		c.dataVersion = 0

		return nil
	}

	version, err := ParseDataVersion(change.Value)
	c.dataVersion = version

	return err
}

// objectOf reads keys such as /prefix/omni.texashpc.com/omniclusters/namespace/name. The prefix is a flag
// of the server.
func objectOf(key []byte) (object, bool) {
	prefix, rest, found := strings.Cut(string(key), "/"+v1alpha1.GroupName+"/")
	if !found {
		return object{}, false
	}

	resource, name, found := strings.Cut(rest, "/")

	return object{prefix: prefix, resource: resource}, found && name != ""
}

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
