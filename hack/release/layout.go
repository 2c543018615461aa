package main

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// blobs are contents by their digests.
type blobs map[digest.Digest][]byte

func digestOf(content []byte) digest.Digest { return digest.FromBytes(content) }

// add keeps a content and returns how it is referred to.
func (b blobs) add(mediaType string, content []byte) ocispec.Descriptor {
	d := digestOf(content)
	b[d] = content

	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

func (b blobs) addJSON(mediaType string, value any) (ocispec.Descriptor, error) {
	content, err := json.Marshal(value)

	return b.add(mediaType, content), err
}

func (b blobs) addAll(others blobs) { maps.Copy(b, others) }

// layout is an OCI image layout: blobs, and the one that stands for all of them.
type layout struct {
	blobs blobs
	top   ocispec.Descriptor
}

// write writes the layout as an archive, which container engines and registry tools read.
func (l *layout) write(path string, at time.Time) error {
	version, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}

	index, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{l.top},
	})
	if err != nil {
		return err
	}

	files := []file{
		{path: ocispec.ImageLayoutFile, content: version, mode: 0o644},
		{path: ocispec.ImageIndexFile, content: index, mode: 0o644},
	}
	for d, content := range l.blobs {
		files = append(files, file{path: "blobs/" + strings.Replace(d.String(), ":", "/", 1), content: content, mode: 0o644})
	}

	packed, err := pack(files, at)
	if err != nil {
		return err
	}

	return os.WriteFile(path, packed, 0o644)
}
