package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a file in an archive.
type file struct {
	path    string
	content []byte
	mode    int64
}

// pack writes a tar archive in which nothing is left to chance: sorted, all of one time, and of nobody in particular.
func pack(files []file, at time.Time) ([]byte, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.path, b.path) })

	var (
		packed bytes.Buffer
		known  = map[string]bool{".": true}
	)

	archive := tar.NewWriter(&packed)

	for _, f := range files {
		for _, dir := range parents(f.path) {
			if known[dir] {
				continue
			}

			known[dir] = true

			header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
			if err := archive.WriteHeader(header); err != nil {
				return nil, err
			}
		}

		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}

		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}

	err := archive.Close()

	return packed.Bytes(), err
}

// parents are the directories above a path, the uppermost first.
func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}

	slices.Reverse(dirs)

	return dirs
}

// compress is gzip without a name or a time.
func compress(content []byte) ([]byte, error) {
	var compressed bytes.Buffer

	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}

	if _, err := writer.Write(content); err != nil {
		return nil, err
	}

	err = writer.Close()

	return compressed.Bytes(), err
}

func packGzip(files []file, at time.Time) ([]byte, error) {
	packed, err := pack(files, at)
	if err != nil {
		return nil, err
	}

	return compress(packed)
}
