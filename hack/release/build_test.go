package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// TestBuildTwice: the same sources make the same files, whatever was there before.
func TestBuildTwice(t *testing.T) {
	r := fixture(t, nil)
	first, second := built(t, r), built(t, r)

	if err := r.build(t.Context(), second, fakePrograms); err != nil {
		t.Fatal(err)
	}

	var files []string

	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		files = append(files, entry.Name())

		if !bytes.Equal(contents(t, first, entry.Name()), contents(t, second, entry.Name())) {
			t.Errorf("%s differs", entry.Name())
		}
	}

	want := []string{
		"checksums.txt", "notes.md", "omni.yaml", r.chartFile(), r.imageFile(), r.sbomFile(name, "image_", platforms[0]), r.sbomFile(name, "image_", platforms[1]),
	}

	for _, p := range platforms {
		want = append(want, r.archiveFile(name, p), r.sbomFile(name, "", p))
	}

	for _, p := range pluginPlatforms {
		want = append(want, r.archiveFile(plugin.name, p), r.sbomFile(plugin.name, "", p))
	}

	if slices.Sort(want); !slices.Equal(files, want) {
		t.Errorf("got %v\nwant %v", files, want)
	}
}

// TestChecksums: every file that people download is in the list, with the right sum.
func TestChecksums(t *testing.T) {
	dir := built(t, fixture(t, nil))

	lines := strings.Split(strings.TrimSpace(string(contents(t, dir, checksumsFile))), "\n")
	if len(lines) != 19 {
		t.Errorf("%d lines", len(lines))
	}

	for _, line := range lines {
		sum, file, _ := strings.Cut(line, "  ")
		if got := sha256.Sum256(contents(t, dir, file)); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: %x, want %s", file, got, sum)
		}
	}
}

// unpack returns the headers and contents of a packed archive.
func unpack(t *testing.T, packed []byte) (headers []*tar.Header, files map[string]string) {
	t.Helper()

	uncompressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}

	files = map[string]string{}

	for archive := tar.NewReader(uncompressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, files
		}

		if err != nil {
			t.Fatal(err)
		}

		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}

		headers, files[header.Name] = append(headers, header), string(content)
	}
}

func TestArchive(t *testing.T) {
	r := fixture(t, nil)

	headers, files := unpack(t, contents(t, built(t, r), r.archiveFile(name, platform{"linux", "arm64"})))
	if !strings.Contains(files["omni-apiserver"], "omni-apiserver for linux/arm64") || !strings.Contains(files["omni-controller"], "omni-controller for linux/arm64") || files["LICENSE"] == "" {
		t.Errorf("got %v", files)
	}

	for _, header := range headers {
		if !header.ModTime.Equal(r.time) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%+v", header)
		}

		if executable := header.Mode&0o111 != 0; executable != (header.Name != "LICENSE") {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
	}
}

// TestPackInOrder: archives are sorted, with every directory before what is in it.
func TestPackInOrder(t *testing.T) {
	files := []file{{path: "b/c/d"}, {path: "a"}, {path: "b/a"}}

	packed, err := packGzip(files, fixture(t, nil).time)
	if err != nil {
		t.Fatal(err)
	}

	slices.Reverse(files)

	if again, err := packGzip(files, fixture(t, nil).time); err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the order of files matters: %v", err)
	}

	var names []string

	headers, _ := unpack(t, packed)
	for _, header := range headers {
		names = append(names, header.Name)
	}

	if want := []string{"a", "b/", "b/a", "b/c/", "b/c/d"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestChart: Helm reads the packed chart, and its Pods use the image of the release.
func TestChart(t *testing.T) {
	r := fixture(t, nil)
	dir := built(t, r)

	chart, err := loader.LoadFile(filepath.Join(dir, r.chartFile()))
	if err != nil {
		t.Fatal(err)
	}

	values, err := util.ToRenderValues(chart, nil, common.ReleaseOptions{Name: "omni", Namespace: "omni", IsInstall: true}, common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}

	rendered, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}

	var text strings.Builder
	for _, manifest := range rendered {
		text.WriteString(manifest)
	}

	index := pushedIndex(t, r, dir)
	if image := "registry.example.com/some-one/omni-cluster-operator@" + index.Digest.String(); strings.Count(text.String(), image) < 2 {
		t.Errorf("the Pods do not use %s", image)
	}

	source, err := loader.LoadDir(filepath.Join(r.root, chartDir))
	if err != nil {
		t.Fatal(err)
	}

	if len(chart.Templates) != len(source.Templates) || len(chart.Files) != len(source.Files) || len(chart.Schema) != len(source.Schema) {
		t.Errorf("%d templates and %d files, the sources have %d and %d", len(chart.Templates), len(chart.Files), len(source.Templates), len(source.Files))
	}
}

// TestChartValues: values in which the image cannot be set are refused.
func TestChartValues(t *testing.T) {
	for _, values := range []string{"image:\n  repository: other\n  digest: \"\"\n", "image:\n  repository: omni-cluster-operator\n"} {
		if got, err := fixture(t, nil).withImage([]byte(values), "sha256:0"); err == nil {
			t.Errorf("%q became %q", values, got)
		}
	}
}
