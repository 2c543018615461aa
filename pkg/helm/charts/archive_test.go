package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"
)

func TestIsSubchart(t *testing.T) {
	for name, want := range map[string]bool{
		"demo/charts/inner.tgz":            true,
		"demo/charts/a/charts/inner.tgz":   true,
		"demo/charts/./inner.tgz":          true,
		"demo/charts/inner.tgz/":           true, // as a name of a file
		"demo/charts/inner.tgz/.":          true,
		"demo/charts/inner.tgz/x/..":       true,
		"./charts/inner.tgz":               true,
		`demo\charts\inner.tgz`:            true, // as Helm reads it
		`demo/x\charts/inner.tgz`:          true,
		"demo/charts/inner/Chart.yaml":     false,
		"demo/files/inner.tgz":             false,
		"demo/charts/inner/files/data.tgz": false,
	} {
		if got := isSubchart(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A sparse file takes a few bytes in an archive, whatever its size.
func TestASparseFileCountsInFull(t *testing.T) {
	const size = 8 << 20

	packed := sparseArchive(t, "demo/sparse", size)

	if err := checkSize(packed, size/2); err == nil || err.(*Error).Reason != TooLarge { // checkSize returns nothing else
		t.Errorf("got %v, want %s", err, TooLarge)
	}

	if err := checkSize(packed, 2*size); err != nil {
		t.Error(err)
	}
}

// sparseArchive packs one sparse file that is a hole from end to end, in GNU's old
// format: package tar reads it and does not write it.
func sparseArchive(t *testing.T, name string, size int64) []byte {
	t.Helper()

	var plain, packed bytes.Buffer

	archive := tar.NewWriter(&plain)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}

	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}

	header := plain.Bytes()[:tarBlock]
	put := func(at int, text string) { copy(header[at:], text) }

	put(156, "S")                                        // the type
	put(386, fmt.Sprintf("%011o\x00%011o\x00", size, 0)) // data from the end on, none
	put(483, fmt.Sprintf("%011o\x00", size))             // the size with its holes
	put(148, "        ")

	sum := 0
	for _, b := range header {
		sum += int(b)
	}

	put(148, fmt.Sprintf("%06o\x00 ", sum))

	zipped := gzip.NewWriter(&packed)
	if _, err := zipped.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}

	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}

	return packed.Bytes()
}
