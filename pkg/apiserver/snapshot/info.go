package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/dataversion"
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
	// DataVersion is the version of our objects (package dataversion). 0: none of our servers wrote one.
	DataVersion int `json:"dataVersion"`
	// Objects is the number of our objects by resource, such as omniclusters.
	Objects map[string]int `json:"objects"`
	// Prefixes are the prefixes of these objects' keys: the --etcd-prefix of the server that stored them. A server
	// with another prefix does not see the objects.
	Prefixes []string `json:"prefixes,omitempty"`
}

// Inspect reads a snapshot. It fails if the file is not whole or was damaged.
func Inspect(path string) (info *Info, err error) {
	// The database is a memory-mapped file, and bbolt panics on pages that it did not write, or reads beyond the end.
	// A panic in another goroutine cannot be recovered here.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			info, err = nil, fmt.Errorf("read the snapshot %s: %w", path, errPages)
		}
	}()

	return inspect(path)
}

func inspect(path string) (*Info, error) {
	if err := Verify(path); err != nil {
		return nil, err
	}

	file, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at the snapshot: %w", err)
	}

	if err := refuseOthers(path); err != nil {
		return nil, fmt.Errorf("read the snapshot %s: %w", path, err)
	}

	status, err := etcdsnapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot %s: %w", path, err)
	}

	info := &Info{
		Path:        path,
		Written:     file.ModTime().UTC().Truncate(time.Second),
		Size:        file.Size(),
		Hash:        fmt.Sprintf("%08x", status.Hash),
		Revision:    status.Revision,
		Keys:        status.TotalKey,
		EtcdVersion: status.Version,
	}

	return info, info.readContent(path)
}

// refuseOthers refuses databases of programs other than etcd, because etcd's code does not check for them.
func refuseOthers(path string) error {
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err // the caller says of what
	}
	defer db.Close()

	return db.View(func(tx *bolt.Tx) error { // our own errors
		for _, bucket := range [][]byte{schema.Key.Name(), schema.Meta.Name()} {
			if tx.Bucket(bucket) == nil {
				return errors.New("it is a database, but not one of etcd")
			}
		}

		return nil
	})
}

func (i *Info) readContent(path string) error {
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("open the snapshot %s: %w", path, err)
	}
	defer db.Close()

	c := &content{objects: map[string]object{}}

	if err := db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(schema.Key.Name()).ForEach(c.add)
	}); err != nil {
		return fmt.Errorf("read the snapshot %s: %w", path, err)
	}

	i.DataVersion = c.dataVersion
	i.Objects = map[string]int{}

	for _, object := range c.objects {
		i.Objects[object.resource]++

		if !slices.Contains(i.Prefixes, object.prefix) {
			i.Prefixes = append(i.Prefixes, object.prefix)
		}
	}

	slices.Sort(i.Prefixes)

	return nil
}

// object is what the key of one of our objects says.
type object struct{ prefix, resource string }

// content collects our objects at the last revision.
type content struct {
	objects     map[string]object // by key
	dataVersion int
}

// add applies one change, in the order of revisions.
func (c *content) add(revision, value []byte) error {
	var change mvccpb.KeyValue
	if err := proto.Unmarshal(value, &change); err != nil {
		return fmt.Errorf("decode a change: %w", err)
	}

	switch found, ours := objectOf(change.Key); {
	case mvcc.IsTombstone(revision) && string(change.Key) == dataversion.Key:
		c.dataVersion = 0
	case mvcc.IsTombstone(revision):
		delete(c.objects, string(change.Key))
	case bytes.Equal(change.Key, []byte(dataversion.Key)):
		version, err := dataversion.Parse(change.Value)
		c.dataVersion = version

		return err
	case ours:
		c.objects[string(change.Key)] = found
	}

	return nil
}

// IsObject reports whether a key is that of one of our objects.
func IsObject(key []byte) bool {
	_, ours := objectOf(key)

	return ours
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
