// Package quota bounds how much is stored over all kinds, per namespace and in total. A Ledger follows every kind by
// a watch, so that each replica counts what the others write. It also reserves room for the writes in progress on its
// own replica.
package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits bound what may be stored. Sizes are bytes of the stored JSON, before encryption. 0 means no limit.
type Limits struct {
	// NamespaceObjects and NamespaceBytes are the limits of each namespace.
	NamespaceObjects, NamespaceBytes int64
	// Objects and Bytes are the limits of all namespaces together.
	Objects, Bytes int64
	// HalfOfEtcd is true if Bytes is half of the quota of the embedded etcd, because --max-bytes is more. To raise
	// --max-bytes changes nothing then.
	HalfOfEtcd bool
}

// etcdQuotaFlag is the flag of the quota of the embedded etcd.
const etcdQuotaFlag = "--etcd-quota-backend-bytes"

// bytesFlag is the flag that has to be raised for more Bytes.
func (l Limits) bytesFlag() string {
	if l.HalfOfEtcd {
		return etcdQuotaFlag
	}

	return "--max-bytes"
}

// Limit is one of the limits.
type Limit struct {
	// Flag is the flag that has to be raised for more.
	Flag string
	// Value is the limit; 0 means none.
	Value int64

	perNamespace bool
	unit         string
	of           func(Use) int64 // what it counts
}

// Each returns all limits.
func (l Limits) Each() []Limit {
	objects, bytes := func(u Use) int64 { return u.Objects }, func(u Use) int64 { return u.Bytes }

	return []Limit{
		{"--max-objects-per-namespace", l.NamespaceObjects, true, "objects", objects},
		{"--max-bytes-per-namespace", l.NamespaceBytes, true, "bytes", bytes},
		{"--max-objects", l.Objects, false, "objects", objects},
		{l.bytesFlag(), l.Bytes, false, "bytes", bytes},
	}
}

// Use is an amount of stored objects.
type Use struct{ Objects, Bytes int64 }

func (u Use) plus(other Use) Use  { return Use{u.Objects + other.Objects, u.Bytes + other.Bytes} }
func (u Use) minus(other Use) Use { return Use{u.Objects - other.Objects, u.Bytes - other.Bytes} }

// key identifies an object; without a name it stands for a kind in a namespace, and without a namespace for the kind.
type key struct{ resource, namespace, name string }

// entry is the size of an object at a resource version.
type entry struct {
	bytes   int64
	version uint64
}

// account is what is stored in a namespace, or in all, and what is reserved for writes in progress.
type account struct{ used, held Use }

// errCounting tells a client to come again.
var errCounting = errors.New("omni-apiserver has just started and still counts what is stored")

// Ledger counts what is stored. Its methods are safe for concurrent use; Begin of a nil Ledger limits nothing.
type Ledger struct {
	limits Limits
	codec  runtime.Encoder

	mu         sync.Mutex
	entries    map[key]entry
	kinds      map[key]Use // of a kind in a namespace, and of a kind
	classes    map[class]Use
	namespaces map[string]account
	total      account
	seen       map[string]uint64 // by resource: how far the watch is
	refused    map[string]int64  // by the flag of the limit
	pending    map[string]bool   // the resources that have not been counted yet
	counted    chan struct{}     // closed when there are none
}

// NewLedger makes an empty ledger. The codec is that of the storage.
func NewLedger(limits Limits, codec runtime.Encoder) *Ledger {
	return &Ledger{
		limits: limits, codec: codec,
		entries: map[key]entry{}, kinds: map[key]Use{}, classes: map[class]Use{}, namespaces: map[string]account{},
		seen: map[string]uint64{}, refused: map[string]int64{}, pending: map[string]bool{}, counted: make(chan struct{}),
	}
}

// Counted is closed once everything that was stored at the start has been counted.
func (l *Ledger) Counted() <-chan struct{} { return l.counted }

// WaitForAll waits after a start until everything stored has been counted, at most as long as the context lasts.
func (l *Ledger) WaitForAll(ctx context.Context) error {
	select {
	case <-l.counted:
		return nil
	default:
	}

	select {
	case <-l.counted:
		return nil
	case <-ctx.Done():
		return errCounting
	}
}

// noteCounted records that a kind has been counted. The caller holds the lock.
func (l *Ledger) noteCounted(resource string) {
	if !l.pending[resource] {
		return
	}

	if delete(l.pending, resource); len(l.pending) == 0 {
		close(l.counted)
	}
}

// Stored returns what is stored of a kind in a namespace; an empty namespace means all.
func (l *Ledger) Stored(resource, namespace string) Use {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.kinds[key{resource: resource, namespace: namespace}]
}

// set records the size of an object as of a version; a record of a later version stays. A size of 0 means that the
// object does not exist. The caller holds the lock.
func (l *Ledger) set(k key, bytes int64, version uint64) {
	before, known := l.entries[k]
	if known && before.version > version {
		return
	}

	change := Use{Bytes: bytes - before.bytes}

	switch {
	case bytes > 0:
		l.entries[k] = entry{bytes, version}

		if !known {
			change.Objects = 1
		}
	case known:
		delete(l.entries, k)

		change.Objects = -1
	}

	l.count(k, before.bytes, -1)
	l.count(k, bytes, 1)
	l.total.used = l.total.used.plus(change)
	l.change(k.namespace, func(a account) account { return account{a.used.plus(change), a.held} })

	for _, kind := range []key{{resource: k.resource}, {resource: k.resource, namespace: k.namespace}} {
		if after := l.kinds[kind].plus(change); after != (Use{}) {
			l.kinds[kind] = after
		} else {
			delete(l.kinds, kind)
		}
	}
}

// change replaces the account of a namespace. The caller holds the lock.
func (l *Ledger) change(namespace string, by func(account) account) {
	if after := by(l.namespaces[namespace]); after != (account{}) {
		l.namespaces[namespace] = after
	} else {
		delete(l.namespaces, namespace)
	}
}

// hold reserves room for a write, or with a negative amount releases it. The caller holds the lock.
func (l *Ledger) hold(namespace string, amount Use) {
	l.total.held = l.total.held.plus(amount)
	l.change(namespace, func(a account) account { return account{a.used, a.held.plus(amount)} })
}

// observe records an object from the watch.
func (l *Ledger) observe(resource string, obj any, deleted bool) error {
	k, version, err := identify(resource, obj)
	if err != nil {
		return err
	}

	bytes, counted := l.bytesAt(k, version)
	if deleted {
		bytes = 0
	} else if !counted {
		if bytes, err = l.size(obj); err != nil {
			return err
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.set(k, bytes, version)
	l.seen[resource] = max(l.seen[resource], version)

	return nil
}

// bytesAt returns the size of an object at a version, if the ledger knows it. The ledger has the sizes of this
// process's own writes; encoding an object for its size is a noticeable part of a write.
func (l *Ledger) bytesAt(k key, version uint64) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	known, found := l.entries[k]

	return known.bytes, found && known.version == version
}

// recount replaces all records of a kind by those of a list.
func (l *Ledger) recount(resource string, all []any, version uint64) error {
	sizes := make(map[key]entry, len(all))

	for _, obj := range all {
		k, at, err := identify(resource, obj)
		if err != nil {
			return err
		}

		bytes, err := l.size(obj)
		if err != nil {
			return err
		}

		sizes[k] = entry{bytes, at}
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	for k := range maps.Keys(l.entries) {
		if _, exists := sizes[k]; k.resource == resource && !exists {
			l.set(k, 0, version)
		}
	}

	for k, now := range sizes {
		l.set(k, now.bytes, now.version)
	}

	l.seen[resource] = max(l.seen[resource], version)

	l.noteCounted(resource)

	return nil
}

// size returns the length of an object's stored JSON, in bytes.
func (l *Ledger) size(obj any) (int64, error) {
	object, ok := obj.(runtime.Object)
	if !ok {
		return 0, fmt.Errorf("%T is no object", obj)
	}

	var bytes counter
	if err := l.codec.Encode(object, &bytes); err != nil {
		return 0, fmt.Errorf("measure %T: %w", obj, err)
	}

	// The object is stored without its resource version.
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetResourceVersion() != "" {
		bytes -= counter(len(`"resourceVersion":"",`) + len(accessor.GetResourceVersion()))
	}

	return int64(bytes), nil
}

// counter counts the bytes written to it.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))

	return len(p), nil
}

var _ io.Writer = new(counter)

// identify returns the key and the resource version of an object.
func identify(resource string, obj any) (key, uint64, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return key{}, 0, fmt.Errorf("count %T: %w", obj, err)
	}

	return keyOf(resource, accessor), versionOf(accessor.GetResourceVersion()), nil
}

func keyOf(resource string, obj metav1.Object) key {
	return key{resource, obj.GetNamespace(), obj.GetName()}
}

// versionOf parses a resource version; 0 if it is malformed.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}

	return version
}

// class is the objects of a kind whose sizes have the same power of two: from 1<<(power-1) to 1<<power - 1 bytes.
type class struct {
	kind  key
	power int
}

// largestPower is the power of the largest size that there could be.
const largestPower = 63

// Largest returns how many bytes so many objects of a kind in a namespace have at most; an empty namespace means all. It
// is never less than the bytes of the largest objects, and at most twice as much.
func (l *Ledger) Largest(resource, namespace string, objects int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	var bytes int64

	for power := largestPower; power > 0 && objects > 0; power-- {
		of := l.classes[class{key{resource: resource, namespace: namespace}, power}]
		if of.Objects == 0 {
			continue
		}

		// All others of the class have at least its smallest size.
		taken := min(objects, of.Objects)
		bytes += min(taken<<power, of.Bytes-(of.Objects-taken)<<(power-1))
		objects -= taken
	}

	return bytes
}

// count adds or removes an object of a size. The caller holds the lock.
func (l *Ledger) count(k key, bytes, objects int64) {
	if bytes == 0 {
		return
	}

	for _, kind := range []key{{resource: k.resource}, {resource: k.resource, namespace: k.namespace}} {
		of := class{kind, bits.Len64(uint64(bytes))} //nolint:gosec // a size is not negative
		if after := l.classes[of].plus(Use{objects, objects * bytes}); after != (Use{}) {
			l.classes[of] = after
		} else {
			delete(l.classes, of)
		}
	}
}
