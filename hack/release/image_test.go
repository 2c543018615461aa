package main

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

// pushedIndex is the image in the archive of a release.
func pushedIndex(t *testing.T, r *release, dist string) ocispec.Descriptor {
	t.Helper()

	store, err := oci.NewFromTar(t.Context(), filepath.Join(dist, r.imageFile()))
	if err != nil {
		t.Fatal(err)
	}

	index, err := store.Resolve(t.Context(), r.version)
	if err != nil {
		t.Fatal(err)
	}

	return index
}

func fetchJSON(t *testing.T, from content.Fetcher, what ocispec.Descriptor, into any) {
	t.Helper()

	raw, err := content.FetchAll(t.Context(), from, what)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}

	if err != nil {
		t.Fatal(err)
	}
}

// TestImage reads the archive with another library, which compares every digest, and the image with the Dockerfile.
func TestImage(t *testing.T) {
	r := fixture(t, nil)

	archive, err := oci.NewFromTar(t.Context(), filepath.Join(built(t, r), r.imageFile()))
	if err != nil {
		t.Fatal(err)
	}

	store := memory.New()

	top, err := oras.Copy(t.Context(), archive, r.version, store, r.version, oras.DefaultCopyOptions)
	if err != nil {
		t.Fatal(err)
	}

	var index ocispec.Index

	fetchJSON(t, store, top, &index)

	if len(index.Manifests) != len(platforms) {
		t.Fatalf("%d images", len(index.Manifests))
	}

	dockerfile := string(contents(t, r.root, "Dockerfile"))

	for i, p := range platforms {
		var (
			manifest ocispec.Manifest
			config   ocispec.Image
		)

		fetchJSON(t, store, index.Manifests[i], &manifest)
		fetchJSON(t, store, manifest.Config, &config)

		if on := index.Manifests[i].Platform; on.OS != p.os || on.Architecture != p.arch || config.OS != p.os || config.Architecture != p.arch {
			t.Errorf("got %v, %v, want %v", on, config.Platform, p)
		}

		user := regexp.MustCompile(`(?m)^USER (.*)$`).FindStringSubmatch(dockerfile)
		command := regexp.MustCompile(`(?m)^CMD (.*)$`).FindStringSubmatch(dockerfile)

		asked, err := json.Marshal(config.Config.Cmd)
		if err != nil || config.Config.User != user[1] || strings.ReplaceAll(string(asked), ",", ", ") != command[1] {
			t.Errorf("got user %s and command %s, the Dockerfile has %s and %s", config.Config.User, asked, user[1], command[1])
		}

		files := layerFiles(t, store, manifest.Layers, config.RootFS.DiffIDs)
		if want := []string{"etc/ssl/certs/ca-certificates.crt", "omni-apiserver", "omni-controller"}; !slices.Equal(files, want) {
			t.Errorf("got %v, want %v", files, want)
		}
	}
}

// layerFiles are the files of the layers of an image, whose digests it compares.
func layerFiles(t *testing.T, store content.Fetcher, layers []ocispec.Descriptor, diffIDs []digest.Digest) []string {
	t.Helper()

	var files []string

	for i, layer := range layers {
		packed, err := content.FetchAll(t.Context(), store, layer)
		if err != nil {
			t.Fatal(err)
		}

		uncompressed, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}

		plain, err := io.ReadAll(uncompressed)
		if err != nil || digest.FromBytes(plain) != diffIDs[i] {
			t.Errorf("layer %d: %v, %s, want %s", i, err, digest.FromBytes(plain), diffIDs[i])
		}

		headers, _ := unpack(t, packed)
		for _, header := range headers {
			if header.Mode&0o444 != 0o444 {
				t.Errorf("%s cannot be read by everybody", header.Name)
			}

			if !strings.HasSuffix(header.Name, "/") {
				files = append(files, header.Name)
			}
		}
	}

	return files
}

// TestAuthorities: Go reads all of them.
func TestAuthorities(t *testing.T) {
	file := authorities()
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(file) {
		t.Error("nothing was read")
	}

	if count := bytes.Count(file, []byte("BEGIN CERTIFICATE")); count < 80 {
		t.Errorf("%d authorities", count)
	}
}
