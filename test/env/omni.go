package env

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// RealOmni holds the paths of what hack/omni/run.sh needs.
type RealOmni struct {
	// Server is the real Omni, Stub the stand-in for its image factory and registry.
	Server string
	Stub   string
}

// EnsureRealOmni returns the real Omni server, built from hack/omni on the first call (about
// four minutes on two cores) and kept in the user's cache directory. Only "make test-omni"
// calls it: Omni's licence, BSL 1.1, grants testing, and the person who runs the server
// accepts its EULA. Nothing that is released builds or holds it.
func EnsureRealOmni(ctx context.Context, progress io.Writer) (RealOmni, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return RealOmni{}, err
	}

	module := filepath.Join(root, "hack", "omni")

	files, err := filepath.Glob(filepath.Join(module, "stub", "*.go"))
	if err != nil {
		return RealOmni{}, fmt.Errorf("list sources of the stub: %w", err)
	}

	sources := make([]string, 0, len(files))
	for _, file := range files {
		sources = append(sources, filepath.Join("stub", filepath.Base(file)))
	}

	dir, err := ensureBuilt(ctx, progress, build{
		name:     "omni",
		what:     "the real Omni (about 4 minutes, once)",
		module:   module,
		ldflags:  "-s -w",
		packages: []string{"github.com/siderolabs/omni/cmd/omni", "./stub"},
		sources:  sources,
		programs: []string{"omni", "stub"},
	})
	if err != nil {
		return RealOmni{}, err
	}

	return RealOmni{Server: filepath.Join(dir, "omni"), Stub: filepath.Join(dir, "stub")}, nil
}
