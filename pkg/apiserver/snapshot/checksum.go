package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

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
