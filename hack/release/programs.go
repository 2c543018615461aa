package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is an operating system and a processor.
type platform struct{ os, arch string }

// platforms are those on which the programs run. They are servers: what people run on their own machines would have more.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// packages are what is built, and what the program is called.
var packages = []struct{ name, path string }{
	{"omni-apiserver", "./cmd/apiserver"},
	{"omni-controller", "./cmd/controller"},
}

// program is a program that was built.
type program struct {
	name    string
	content []byte
	info    *buildinfo.BuildInfo
}

// settings are what the compiler would otherwise take from the machine: all of it is said, so that nothing differs.
func settings(p platform) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOFLAGS=-trimpath -buildvcs=false -tags=kustomize_disable_go_plugin_support", "GOWORK=off", "GOTOOLCHAIN=local",
	}
}

// compile builds the programs for a platform.
func (r *release) compile(ctx context.Context, p platform) ([]program, error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	flags, err := r.command(ctx, p, "hack/ldflags.sh").Output()
	if err != nil {
		return nil, fmt.Errorf("hack/ldflags.sh: %w", err)
	}

	var programs []program

	for _, pkg := range packages {
		path := filepath.Join(dir, pkg.name)

		build := r.command(ctx, p, "go", "build", "-ldflags", "-s -w "+strings.TrimSpace(string(flags)), "-o", path, pkg.path)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s for %s/%s: %w\n%s", pkg.name, p.os, p.arch, err, out)
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}

		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pkg.name, err)
		}

		programs = append(programs, program{pkg.name, content, info})
	}

	return programs, nil
}

// command is a command in the repository with the settings of a platform.
func (r *release) command(ctx context.Context, p platform, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Env = append(append(os.Environ(), settings(p)...), "VERSION="+r.version, "COMMIT="+r.commit)

	return cmd
}
