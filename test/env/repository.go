package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// modulePath names this repository's module; its go.mod marks the repository's root.
const modulePath = "omni.texashpc.com/omni-cluster-operator"

// progressInterval is how often a long build says that it is still alive.
const progressInterval = 15 * time.Second

// RepositoryRoot returns the root of this repository, found by walking up from the working
// directory. Tests and "go run" both start inside it.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}

	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find repository: the working directory is outside of the module " + modulePath)
		}

		dir = parent
	}
}

// cacheDirectory returns a directory below the user's cache, made if needed.
func cacheDirectory(elements ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w", err)
	}

	dir := filepath.Join(append([]string{cache, "omni-cluster-operator"}, elements...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}

	return dir, nil
}

// withoutGoPlugins is a build tag of kustomize, which the Omni client and kubectl bring along. A program
// that can load Go plugins keeps every method of every package, and only the system's linker can link it.
const withoutGoPlugins = "kustomize_disable_go_plugin_support"

// internedFields is a build tag of apimachinery: equal managedFields are held in memory once. Our programs have it;
// the parts of Kubernetes are built as Kubernetes releases them.
const internedFields = "fieldsv1string"

// goBuild compiles main packages of the module in dir as the Dockerfile does: without C and without paths
// of this machine, so that what is tested is what is released. out is the program's path, or, with a
// separator at its end, the directory for several programs; tags are build tags. A cold build takes minutes, so
// progress gets a line from time to time.
func goBuild(ctx context.Context, progress io.Writer, dir, out, tags, ldflags string, packages ...string) error {
	// -v prints one line for each package compiled: the only sign of life that go build gives.
	args := append([]string{"build", "-v", "-trimpath", "-ldflags", ldflags, "-o", out}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -tags="+tags, "GOWORK=off")

	var lines lineBuffer
	cmd.Stdout, cmd.Stderr = &lines, &lines

	done := make(chan error, 1)
	start := time.Now()

	go func() { done <- cmd.Run() }()

	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()

	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("go build %v: %w\n%s", packages, err, lines.tail(20))
			}

			return nil
		case <-ticker.C:
			fmt.Fprintf(progress, "  still building: %d packages in %s\n", lines.count(), time.Since(start).Round(time.Second))
		}
	}
}
