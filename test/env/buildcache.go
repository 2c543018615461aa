package env

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// buildTimeout bounds a cold build. On two cores Kubernetes takes about six minutes, Omni with its dependencies an hour.
const buildTimeout = 2 * time.Hour

// build is a set of programs from one nested module, kept in the cache.
type build struct {
	name     string            // folder in the cache
	what     string            // for the progress line
	module   string            // directory of the nested module
	ldflags  string            // for the linker
	packages []string          // main packages
	rename   map[string]string // file name that go build chooses -> wanted name
	sources  []string          // Go files of the module itself, below its directory, that matter
	programs []string          // wanted files
}

// ensureBuilt returns the directory that holds the programs.
func ensureBuilt(ctx context.Context, progress io.Writer, b build) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()

	key, err := moduleKey(b)
	if err != nil {
		return "", err
	}

	cache, err := cacheDirectory(b.name)
	if err != nil {
		return "", err
	}

	bin := filepath.Join(cache, key, "bin")
	if b.complete(bin) {
		return bin, nil
	}

	lock, err := lockFile(ctx, filepath.Join(cache, key+".lock"), func() {
		fmt.Fprintln(progress, "waiting for another program that builds", b.what)
	})
	if err != nil {
		return "", err
	}
	defer lock.release()

	if b.complete(bin) { // another program built it while this one waited
		return bin, nil
	}

	start := time.Now()
	fmt.Fprintln(progress, "building", b.what)

	if err := b.run(ctx, progress, bin); err != nil {
		return "", err
	}

	fmt.Fprintf(progress, "built in %s, kept in %s\n", time.Since(start).Round(time.Second), bin)

	return bin, nil
}

// run builds into a directory beside bin and moves it there when it is complete, so that
// an interrupted build leaves nothing that looks finished.
func (b build) run(ctx context.Context, progress io.Writer, bin string) error {
	partial := bin + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.RemoveAll(bin), os.MkdirAll(partial, 0o755)); err != nil {
		return fmt.Errorf("prepare %s: %w", partial, err)
	}

	if err := goBuild(ctx, progress, b.module, partial+string(filepath.Separator), withoutGoPlugins, b.ldflags, b.packages...); err != nil {
		return err
	}

	for from, to := range b.rename {
		if err := os.Rename(filepath.Join(partial, from), filepath.Join(partial, to)); err != nil {
			return fmt.Errorf("name %s: %w", to, err)
		}
	}

	if !b.complete(partial) {
		return fmt.Errorf("go build left no %v in %s", b.programs, partial)
	}

	if err := os.Rename(partial, bin); err != nil {
		return fmt.Errorf("keep build: %w", err)
	}

	return nil
}

func (b build) complete(dir string) bool {
	for _, program := range b.programs {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}

	return true
}

// moduleKey names everything that decides what the programs are.
func moduleKey(b build) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH, b.ldflags, b.packages)

	for _, name := range append([]string{"go.mod", "go.sum"}, b.sources...) {
		content, err := os.ReadFile(filepath.Join(b.module, name))
		if err != nil {
			return "", fmt.Errorf("read nested module: %w", err)
		}

		hash.Write(content)
	}

	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
