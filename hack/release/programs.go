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

// platforms are those of the programs that run in a cluster, and of their images.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// pluginPlatforms are those of the machines on which people run kubectl.
var pluginPlatforms = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}

// source is what a program is called, and the package that it is built of.
type source struct{ name, path string }

// servers are the programs that run in a cluster.
var servers = []source{
	{"omni-apiserver", "./cmd/apiserver"},
	{"omni-controller", "./cmd/controller"},
}

// plugin is the plugin of kubectl.
var plugin = source{"kubectl-omni", "./cmd/kubectl-omni"}

// file is what the program is called on a platform.
func (s source) file(p platform) string {
	if p.os == "windows" {
		return s.name + ".exe"
	}

	return s.name
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
		"GOFLAGS=-trimpath -buildvcs=false -tags=kustomize_disable_go_plugin_support,fieldsv1string", "GOWORK=off", "GOTOOLCHAIN=local",
	}
}

// compile builds programs for a platform.
func (r *release) compile(ctx context.Context, p platform, sources ...source) ([]program, error) {
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

	for _, source := range sources {
		path := filepath.Join(dir, source.name)

		build := r.command(ctx, p, "go", "build", "-ldflags", "-s -w "+strings.TrimSpace(string(flags)), "-o", path, source.path)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s for %s/%s: %w\n%s", source.name, p.os, p.arch, err, out)
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}

		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.name, err)
		}

		programs = append(programs, program{source.file(p), content, info})
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
