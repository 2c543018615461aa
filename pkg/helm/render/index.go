package render

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// MaxIndex is how many bytes may be kept of one index: a quarter of a million versions take about 60 MiB as text.
const MaxIndex = 32 << 20

// entriesBytes is about how much a frame of entries holds.
const entriesBytes = 256 << 10

// Index is what is kept of the index of a chart repository.
type Index struct {
	// Charts are the versions of each chart, in the order of the index.
	Charts map[string][]Entry
	// Bytes is about what they take in memory.
	Bytes int64
}

// Entry is one version of a chart.
type Entry struct {
	// Version is its number, never empty.
	Version string
	// URL is where its archive is, as the index says it; empty if it says nothing.
	URL string
	// Digest is that of the archive, as the index says it.
	Digest string
}

// NewIndex makes an empty index.
func NewIndex() *Index { return &Index{Charts: map[string][]Entry{}} }

// Add keeps a version of a chart. It returns false if the index has become too large.
func (i *Index) Add(chart string, entry Entry) bool {
	known, found := i.Charts[chart]
	if !found {
		i.Bytes += chartCost(chart)
	}

	i.Charts[chart] = append(known, entry)
	i.Bytes += entry.cost() + int64(cap(i.Charts[chart])-cap(known))*int64(unsafe.Sizeof(entry))

	return i.Bytes <= MaxIndex
}

// chartCost is about what a chart takes in a map, in bytes, beside its versions.
func chartCost(name string) int64 {
	const slot = 96 // its place in a map that is partly empty

	return TextCost(name) + slot
}

// cost is what the texts of an entry take, in bytes.
func (e *Entry) cost() int64 { return TextCost(e.Version) + TextCost(e.URL) + TextCost(e.Digest) }

// TextCost is what a text takes, in bytes: memory is given out in steps.
func TextCost(text string) int64 { return int64(len(text)+15) &^ 15 }

// WriteEntries calls write with the contents of the frames that hold an index. Each is valid until the next.
func (i *Index) WriteEntries(write func(content []byte) error) error {
	content := make([]byte, 0, entriesBytes)

	for chart, entries := range i.Charts {
		for _, entry := range entries {
			if len(content) > entriesBytes {
				if err := write(content); err != nil {
					return err
				}

				content = content[:0]
			}

			for _, text := range []string{chart, entry.Version, entry.URL, entry.Digest} {
				content = append(binary.AppendUvarint(content, uint64(len(text))), text...)
			}
		}
	}

	if len(content) == 0 {
		return nil
	}

	return write(content)
}

// readEntries adds what a frame holds.
func (i *Index) readEntries(content []byte) error {
	for len(content) > 0 {
		var texts [4][]byte

		for n := range texts {
			length, size := binary.Uvarint(content)
			if size <= 0 || length > math.MaxInt32 || int(length) > len(content)-size {
				return errConfused
			}

			texts[n], content = content[size:size+int(length)], content[size+int(length):]
		}

		entry := Entry{Version: string(texts[1]), URL: string(texts[2]), Digest: string(texts[3])}
		if entry.Version == "" || !i.Add(string(texts[0]), entry) {
			return errConfused // the worker counts, too
		}
	}

	return nil
}

// Provenance is what a provenance file has to say.
type Provenance struct {
	// Name and Version are those under which the chart is offered.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Digest is sha256:<hex> of the chart's archive.
	Digest string `json:"digest"`
	// Files are the names that the archive may have. There is at least one.
	Files []string `json:"files"`
}

// Check returns an error if what is signed under a name and a version is not the chart. What a file leaves out is
// seen when the chart is loaded.
func (p *Provenance) Check(name, version string) error {
	if name != "" && name != p.Name || version != "" && version != p.Version {
		return OtherChart(name, version)
	}

	return nil
}

// OtherChart says that a signature is of another chart than the one it is offered for.
func OtherChart(name, version string) error {
	return fmt.Errorf("what is signed is %s %s; the repository offers it under another name or version", name, version)
}
