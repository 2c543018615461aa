package env

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"sync"
)

// Binaries holds the paths of this repository's programs.
type Binaries struct {
	// OmniAPIServer and OmniController are absolute paths.
	OmniAPIServer  string
	OmniController string
}

// built is what BuildBinaries has built in this process, nil before.
var built struct {
	sync.Mutex

	binaries *Binaries
}

// BuildBinaries compiles this repository's programs as they are at its first call in a process. The first build takes a
// few minutes and prints to progress; one with nothing changed costs two seconds.
func BuildBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	built.Lock()
	defer built.Unlock()

	if built.binaries != nil {
		return *built.binaries, nil
	}

	binaries, err := buildBinaries(ctx, progress)
	if err == nil {
		built.binaries = &binaries
	}

	return binaries, err
}

func buildBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()

	root, err := RepositoryRoot()
	if err != nil {
		return Binaries{}, err
	}

	// A directory per working tree: two trees must not overwrite each other's programs.
	tree := sha256.Sum256([]byte(root))

	dir, err := cacheDirectory("operator", hex.EncodeToString(tree[:])[:16])
	if err != nil {
		return Binaries{}, err
	}

	lock, err := lockFile(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintln(progress, "waiting for another program that builds omni-apiserver and omni-controller")
	})
	if err != nil {
		return Binaries{}, err
	}
	defer lock.release()

	binaries := Binaries{
		OmniAPIServer:  filepath.Join(dir, "omni-apiserver"),
		OmniController: filepath.Join(dir, "omni-controller"),
	}

	for _, program := range []struct{ source, target string }{
		{"./cmd/apiserver", binaries.OmniAPIServer},
		{"./cmd/controller", binaries.OmniController},
	} {
		fmt.Fprintln(progress, "building", filepath.Base(program.target))

		if err := goBuild(ctx, progress, root, program.target, withoutGoPlugins+","+internedFields, "-s -w", program.source); err != nil {
			return Binaries{}, err
		}
	}

	return binaries, nil
}
