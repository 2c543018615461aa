package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// FluxComponent is one of Flux's controllers, by its name.
type FluxComponent string

// The controllers of Flux that can be built here; hack/flux has a nested module for each, which
// names the version.
const (
	// FluxSourceController fetches what the others use, and serves it to them.
	FluxSourceController FluxComponent = "source-controller"
	// FluxKustomizeController applies, waits for and prunes manifests.
	FluxKustomizeController FluxComponent = "kustomize-controller"
	// FluxHelmController installs charts. Its nested module says with which Helm it is built.
	FluxHelmController FluxComponent = "helm-controller"
)

// FluxComponents returns all of them, in the order in which they start.
func FluxComponents() []FluxComponent {
	return []FluxComponent{FluxSourceController, FluxKustomizeController, FluxHelmController}
}

// BuiltFlux is a built controller of Flux.
type BuiltFlux struct {
	// Binary is the program.
	Binary string
	// Definitions is the directory of its custom resource definitions. It is read-only.
	Definitions string
}

// EnsureFlux returns one of Flux's controllers. If the user's cache directory does not have it, it
// is built first, which takes about three minutes on two idle cores; progress gets a line now and
// then. The module itself has to be in Go's module cache or on the module proxy.
func EnsureFlux(ctx context.Context, progress io.Writer, component FluxComponent) (BuiltFlux, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return BuiltFlux{}, err
	}

	module := filepath.Join(root, "hack", "flux", string(component))

	dir, err := ensureBuilt(ctx, progress, build{
		name:     "flux",
		what:     "Flux's " + string(component) + " (about 3 minutes, once)",
		module:   module,
		ldflags:  "-s -w",
		packages: []string{component.module()},
		programs: []string{string(component)},
	})
	if err != nil {
		return BuiltFlux{}, err
	}

	source, err := moduleDirectory(ctx, module, component.module())
	if err != nil {
		return BuiltFlux{}, err
	}

	return BuiltFlux{
		Binary:      filepath.Join(dir, string(component)),
		Definitions: filepath.Join(source, "config", "crd", "bases"),
	}, nil
}

// module is the path of the component's Go module; its root is the main package.
func (c FluxComponent) module() string { return "github.com/fluxcd/" + string(c) }

// moduleDirectory returns where Go keeps the source of a module that the nested module in dir
// requires, checked against its go.sum; it is downloaded if it is not there.
func moduleDirectory(ctx context.Context, dir, path string) (string, error) {
	var out, stderr bytes.Buffer

	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = &out, &stderr

	runErr := cmd.Run() // what went wrong is in its output

	var module struct{ Dir, Error string }
	if err := json.Unmarshal(out.Bytes(), &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("find the source of %s: %w", path, errors.Join(runErr, err, errors.New(module.Error+stderr.String())))
	}

	return module.Dir, nil
}
