package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// environment is what hack/release.sh sets.
var environment = map[string]string{
	"COMMIT": "0123456789abcdef0123456789abcdef01234567", "SOURCE_DATE_EPOCH": "1700000000", "REGISTRY": "registry.example.com/Some-One/",
	"DOWNLOADS": "https://downloads.example.com/releases/",
}

// fixture is a release of this repository's chart, with some variables of the environment changed.
func fixture(t *testing.T, changes map[string]string) *release {
	t.Helper()

	env := maps.Clone(environment)
	maps.Copy(env, changes)

	r, err := describe("../..", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// fakePrograms stand for programs of a platform, which take minutes to build. They are made of two modules, one of which
// is replaced.
func fakePrograms(_ context.Context, p platform, sources ...source) ([]program, error) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.com/one", Version: "v1.0.0", Sum: "h1:one"},
		{Path: "example.com/two", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.1+incompatible"}},
	}}

	var programs []program
	for _, source := range sources {
		content := "#!/bin/sh\necho " + source.name + " for " + p.os + "/" + p.arch + "\n"
		programs = append(programs, program{source.file(p), []byte(content), info})
	}

	return programs, nil
}

// built is a directory with a release of fake programs.
func built(t *testing.T, r *release) string {
	t.Helper()

	dir := filepath.Join(t.TempDir(), "dist")
	if err := r.build(t.Context(), dir, fakePrograms); err != nil {
		t.Fatal(err)
	}

	return dir
}

func contents(t *testing.T, path ...string) []byte {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}

	return content
}
