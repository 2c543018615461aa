package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// The format of bbolt's files, in the byte order of the machine. A page begins with its number, its kind, a count, and how
// many pages it goes on over. A branch or a leaf has as many elements as it counts, of one size, then keys and values.
const (
	headerSize   = 16
	elementSize  = 16
	branchPage   = uint16(0x01)
	leafPage     = uint16(0x02)
	freelistPage = uint16(0x10)
	bucketFlag   = uint32(0x01)
	// freelistAt is where a meta page has the number of the page with the list of free pages; noFreelist if there is none.
	freelistAt = 48
	noFreelist = math.MaxUint64
	// minPageSize is the smallest page that bbolt looks for. etcd's are as large as those of the machine: 4 KiB, or more. No
	// machine with Linux has larger ones than maxPageSize.
	minPageSize, maxPageSize = 1 << 10, 64 << 10
	// maxHeld bounds the pages that are in memory at once, in bytes: those from the root to the one that is read. There are five
	// or so, the largest with values as large as the largest request. The list of free pages takes 8 bytes for each of them: 16 MiB
	// in a database of 8 GiB, the most that etcd recommends.
	maxHeld = 256 << 20
)

// database reads a bbolt file and checks every page that is in use. bbolt itself panics on damaged pages, or reads beyond the
// end of the file; its own check does so in goroutines where nobody can recover. What passes here, it can open.
type database struct {
	file     io.ReaderAt
	pageSize int64
	root     uint64
	freelist uint64
	seen     []bool // the pages that were read, by number
	held     int64  // bytes of the pages that are in memory
}

// openPages reads where the tree of pages begins. bbolt has checked the meta page of the transaction.
func openPages(file io.ReaderAt, size int64, tx *bolt.Tx) (*database, error) {
	d := &database{file: file, pageSize: int64(tx.DB().Info().PageSize), root: uint64(tx.Cursor().Bucket().Root())}

	// A meta page that was not damaged, but made, can have any size.
	if d.pageSize < minPageSize || d.pageSize > maxPageSize || tx.Size() < 2*d.pageSize || tx.Size() > size {
		return nil, errPages
	}

	field := make([]byte, 8)
	if _, err := file.ReadAt(field, int64(tx.ID()%2)*d.pageSize+freelistAt); err != nil {
		return nil, fmt.Errorf("read the meta page: %w", err)
	}

	d.freelist = binary.NativeEndian.Uint64(field)
	d.seen = make([]bool, tx.Size()/d.pageSize)

	return d, nil
}

// forEach reads all keys, in order. begin is called with the name of each bucket, and returns what is called with its keys
// and values. What these are given, they may not keep.
func (d *database) forEach(ctx context.Context, begin func(bucket []byte) func(key, value []byte) error) error {
	if err := d.walk(d.root, nil, nil, func(e element) error {
		if e.flags != bucketFlag || len(e.value) < 16 {
			return errPages
		}

		visit := begin(e.key)
		each := func(e element) error {
			if e.flags != 0 { // etcd has no buckets in buckets
				return errPages
			}

			if err := ctx.Err(); err != nil { // a large database takes some seconds
				return err
			}

			return visit(e.key, e.value)
		}

		if root := binary.NativeEndian.Uint64(e.value); root != 0 {
			return d.walk(root, nil, nil, each)
		}

		return d.walkPage(e.value[16:], nil, nil, each) // a small bucket is a page within the page
	}); err != nil {
		return err
	}

	return d.checkFreelist()
}

// walk reads the elements of a page and of those below it. Their keys are not below from, and below to; nil is no bound.
func (d *database) walk(number uint64, from, to []byte, visit func(element) error) error {
	page, err := d.read(number)
	if err != nil {
		return err
	}

	defer d.release(page)

	return d.walkPage(page, from, to, visit)
}

func (d *database) walkPage(page []byte, from, to []byte, visit func(element) error) error {
	count, err := countOf(page)
	if err != nil {
		return err
	}

	for i := range count {
		e, err := elementOf(page, i)
		if err != nil {
			return err
		}

		next := to

		if i+1 < count {
			following, err := elementOf(page, i+1)
			if err != nil {
				return err
			}

			next = following.key
		}

		if from != nil && bytes.Compare(e.key, from) < 0 || next != nil && bytes.Compare(e.key, next) >= 0 {
			return errPages
		}

		if e.child == 0 {
			err = visit(e)
		} else {
			err = d.walk(e.child, e.key, next, visit)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// read returns a page with those that it goes on over, until it is released. No page is in use twice.
func (d *database) read(number uint64) ([]byte, error) {
	limit := uint64(len(d.seen))
	if number < 2 || number >= limit { // 0 and 1 are the meta pages
		return nil, errPages
	}

	page := make([]byte, d.pageSize)
	if _, err := d.file.ReadAt(page, int64(number)*d.pageSize); err != nil { //nolint:gosec // below the limit
		return nil, fmt.Errorf("read page %d: %w", number, err)
	}

	more := uint64(binary.NativeEndian.Uint32(page[12:]))
	if binary.NativeEndian.Uint64(page) != number || more >= limit-number {
		return nil, errPages
	}

	used := d.seen[number : number+more+1]
	if slices.Contains(used, true) {
		return nil, errPages
	}

	for i := range used {
		used[i] = true
	}

	if d.held += int64(len(used)) * d.pageSize; d.held > maxHeld {
		return nil, errPages
	}

	if more == 0 {
		return page, nil
	}

	page = make([]byte, int64(len(used))*d.pageSize)
	if _, err := d.file.ReadAt(page, int64(number)*d.pageSize); err != nil { //nolint:gosec // below the limit
		return nil, fmt.Errorf("read page %d: %w", number, err)
	}

	return page, nil
}

func (d *database) release(page []byte) { d.held -= int64(len(page)) }

// element is a key of a page: with the page below it in a branch, with its value in a leaf.
type element struct {
	child      uint64
	flags      uint32
	key, value []byte
}

// countOf returns how many elements a branch or a leaf has.
func countOf(page []byte) (int, error) {
	if len(page) < headerSize {
		return 0, errPages
	}

	kind, count := kindOf(page), int(binary.NativeEndian.Uint16(page[10:]))
	if kind != leafPage && (kind != branchPage || count == 0) || headerSize+count*elementSize > len(page) {
		return 0, errPages
	}

	return count, nil
}

func kindOf(page []byte) uint16 { return binary.NativeEndian.Uint16(page[8:]) }

// elementOf returns an element of a branch or a leaf that has so many. The pages on the way to one are in memory together, so
// their elements are not.
func elementOf(page []byte, i int) (element, error) {
	var (
		e         element
		valueSize uint64
	)

	content := page[headerSize+i*elementSize:]
	fields := content

	if kindOf(page) == branchPage {
		if e.child = binary.NativeEndian.Uint64(fields[8:]); e.child == 0 {
			return e, errPages
		}
	} else {
		e.flags = binary.NativeEndian.Uint32(fields)
		valueSize = uint64(binary.NativeEndian.Uint32(fields[12:]))
		fields = fields[4:]
	}

	begin := uint64(binary.NativeEndian.Uint32(fields)) // from the element itself
	middle := begin + uint64(binary.NativeEndian.Uint32(fields[4:]))
	end := middle + valueSize

	if end > uint64(len(content)) {
		return e, errPages
	}

	e.key, e.value = content[begin:middle], content[middle:end]

	return e, nil
}

// checkFreelist checks the list of free pages, which etcd writes only when it defragments, after the others were read.
func (d *database) checkFreelist() error {
	if d.freelist == noFreelist {
		return nil
	}

	page, err := d.read(d.freelist)
	if err != nil {
		return err
	}

	free := page[headerSize:]

	count := uint64(binary.NativeEndian.Uint16(page[10:]))
	if count == math.MaxUint16 { // the number is the first of the list
		count, free = binary.NativeEndian.Uint64(free), free[8:]
	}

	if kindOf(page) != freelistPage || count > uint64(len(free))/8 {
		return errPages
	}

	for i := range count {
		number := binary.NativeEndian.Uint64(free[i*8:])
		if number < 2 || number >= uint64(len(d.seen)) || d.seen[number] {
			return errPages
		}

		d.seen[number] = true // no page is free twice
	}

	return nil
}
