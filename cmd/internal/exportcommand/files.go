package exportcommand

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
	"omni.texashpc.com/omni-cluster-operator/pkg/export"
)

// writeFiles writes one file per cluster, and one for the connection if there is one. Only the user may read them, because their
// content may be secret. It never overwrites a file with different content: somebody may have edited it.
func writeFiles(dir string, result *export.Result, stderr io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("--output-dir: %w", err)
	}

	var problems []error

	// Check all files before the first one is written.
	for _, file := range result.Files() {
		path := pathOf(dir, file)
		there, err := os.ReadFile(path)

		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, fmt.Errorf("--output-dir: %w", err))
		case !bytes.Equal(there, file.Text):
			problems = append(problems, fmt.Errorf("--output-dir: %s is there with another content: remove it, or choose another directory", path))
		}
	}

	if err := errors.Join(problems...); err != nil {
		return err
	}

	for _, file := range result.Files() {
		path := pathOf(dir, file)
		if err := disk.WriteFile(path, file.Text); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}

		fmt.Fprintln(stderr, "wrote", path)
	}

	return nil
}

func pathOf(dir string, file export.File) string { return filepath.Join(dir, file.Name+".yaml") }
