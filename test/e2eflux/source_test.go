package e2eflux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of what "flux push artifact" makes.
const (
	fluxConfigType  = "application/vnd.cncf.flux.config.v1+json"
	fluxContentType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// source is a registry on loopback, without TLS, with one repository of manifests.
type source struct {
	t       *testing.T
	backend http.Handler
	server  *httptest.Server
}

func newSource(t *testing.T) *source {
	t.Helper()

	s := &source{t: t, backend: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	s.server = httptest.NewServer(s.backend)
	t.Cleanup(s.server.Close)

	return s
}

// url is what an OCIRepository names, with insecure: true.
func (s *source) url() string {
	return "oci://" + strings.TrimPrefix(s.server.URL, "http://") + "/platform"
}

// push makes these files the newest revision of the repository, and returns what Flux calls it.
func (s *source) push(files map[string]string) (revision string) {
	s.t.Helper()

	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, fluxConfigType)

	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(pack(s.t, files), fluxContentType)})
	if err != nil {
		s.t.Fatal(err)
	}

	config, err := image.RawConfigFile()
	if err != nil {
		s.t.Fatal(err)
	}

	layers, err := image.Layers()
	if err != nil {
		s.t.Fatal(err)
	}

	s.blob(config)
	s.blob(read(s.t, layers[0]))

	manifest, err := image.RawManifest()
	if err != nil {
		s.t.Fatal(err)
	}

	s.send(http.MethodPut, "/v2/platform/manifests/latest", string(types.OCIManifestSchema1), manifest)

	digest, err := image.Digest()
	if err != nil {
		s.t.Fatal(err)
	}

	return "latest@" + digest.String()
}

func (s *source) blob(data []byte) {
	s.t.Helper()

	digest, _, err := v1.SHA256(bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}

	s.send(http.MethodPost, "/v2/platform/blobs/uploads/?digest="+url.QueryEscape(digest.String()), "application/octet-stream", data)
}

func (s *source) send(method, path, mediaType string, data []byte) {
	s.t.Helper()

	request := httptest.NewRequest(method, path, bytes.NewReader(data))
	request.Header.Set("Content-Type", mediaType)

	answer := httptest.NewRecorder()
	s.backend.ServeHTTP(answer, request)

	if answer.Code != http.StatusCreated {
		s.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
}

// pack makes a gzipped tar archive.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()

	var buffer bytes.Buffer

	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)

	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}

		if _, err := fmt.Fprint(archive, files[name]); err != nil {
			t.Fatal(err)
		}
	}

	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}

	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}

	return buffer.Bytes()
}

func read(t *testing.T, layer v1.Layer) []byte {
	t.Helper()

	content, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}

	return data
}
