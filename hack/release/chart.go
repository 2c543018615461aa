package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// writeChart packs the chart. Its image is the one of this release, by its digest, so that it can be installed as it is,
// and nobody who can write to the registry later can put another image in its place.
func (r *release) writeChart(to, imageDigest string) error {
	files, err := chartFiles(filepath.Join(r.root, chartDir))
	if err != nil {
		return err
	}

	for i := range files {
		if files[i].path == name+"/values.yaml" {
			if files[i].content, err = r.withImage(files[i].content, imageDigest); err != nil {
				return err
			}
		}
	}

	packed, err := packGzip(files, r.time)
	if err != nil {
		return err
	}

	return os.WriteFile(to, packed, 0o644)
}

// chartFiles reads a chart as Helm packs it: without what a person's tools leave there, whose names begin with a dot.
func chartFiles(dir string) ([]file, error) {
	var files []file

	err := filepath.WalkDir(dir, func(found string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".helmignore" {
			return err
		}

		relative, err := filepath.Rel(dir, found)
		if err != nil {
			return err
		}

		content, err := os.ReadFile(found)
		files = append(files, file{path: path.Join(name, filepath.ToSlash(relative)), content: content, mode: 0o644})

		return err
	})

	return files, err
}

// withImage sets where the image is in the values, whose comments stay.
func (r *release) withImage(values []byte, imageDigest string) ([]byte, error) {
	for _, change := range []struct{ from, to string }{
		{"\n  repository: " + name + "\n", "\n  repository: " + r.image() + "\n"},
		{"\n  digest: \"\"\n", "\n  digest: " + imageDigest + "\n"},
	} {
		if count := bytes.Count(values, []byte(change.from)); count != 1 {
			return nil, fmt.Errorf("values.yaml has %q %d times", strings.TrimSpace(change.from), count)
		}

		values = bytes.Replace(values, []byte(change.from), []byte(change.to), 1)
	}

	return values, nil
}

// metadataOf is the Chart.yaml of a packed chart, as JSON.
func metadataOf(packed []byte) ([]byte, error) {
	uncompressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}

	archive := tar.NewReader(uncompressed)

	for {
		header, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("look for Chart.yaml: %w", err)
		}

		if header.Name == name+"/Chart.yaml" {
			content, err := io.ReadAll(archive)
			if err != nil {
				return nil, err
			}

			return yaml.YAMLToJSON(content)
		}
	}
}
