package deploy

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallPageValues: the values that docs/how-to/install.md shows are taken, and fit together.
func TestInstallPageValues(t *testing.T) {
	shown := 0

	for i, part := range strings.Split(read(t, filepath.Join(root, "docs/how-to/install.md")), "```") {
		values, ok := strings.CutPrefix(part, "yaml\n")
		if i%2 == 0 || !ok || strings.Contains(values, "newName:") {
			continue
		}

		shown++

		if problems := inconsistencies(t, mustRender(t, values)); len(problems) > 0 {
			t.Errorf("%s\n%s", values, strings.Join(problems, "\n"))
		}
	}

	if shown < 5 {
		t.Errorf("only %d blocks of values were found", shown)
	}
}
