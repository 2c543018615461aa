package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// The manifests that users already have, and our own examples, are accepted as they are: through
// kubectl with strict validation, without a warning about an unknown field.
func TestPublishedManifestsApply(t *testing.T) {
	slow(t)
	t.Parallel()

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	s := &space{t: t, name: env.SystemNamespace}

	for _, folder := range []string{"test/testdata/seeds", "artifacts/examples"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
		if err != nil || len(files) < 8 {
			t.Fatalf("%s has %d files: %v", folder, len(files), err)
		}

		for _, file := range files {
			out, err := s.try("apply", "--validate=strict", "-f", file)
			if err != nil || strings.Contains(out, "unknown field") {
				t.Errorf("%s: %s %v", filepath.Base(file), out, err)
			}
		}

		// There is no Secret with a key: nothing remote was made, and all of them go at once.
		s.run("delete", "omni", "--all", "--timeout=60s")
	}
}
