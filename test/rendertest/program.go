// Package rendertest says which program the workers of tests run.
package rendertest

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Program returns what to set as render.Options.Program in tests whose charts need
// the bounds of a worker. It is empty, the test program itself, unless that has the
// race detector in it, which takes memory as no program of ours does: then it is
// omni-controller, built into the directory.
func Program(directory string) (string, error) {
	if !raceDetector {
		return "", nil
	}

	path := filepath.Join(directory, "omni-controller")

	said, err := exec.Command("go", "build", "-o", path, "omni.texashpc.com/omni-cluster-operator/cmd/controller").CombinedOutput() // go test bounds it
	if err != nil {
		return "", fmt.Errorf("build omni-controller: %w: %s", err, said)
	}

	return path, nil
}
