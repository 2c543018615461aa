package deploy

import (
	"context"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// runShell runs the commands of a page as the administrator.
func runShell(t *testing.T, hub *env.Hub, script string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), eventuallyTimeout)
	defer cancel()

	if out, err := hub.Shell(ctx, t.TempDir(), script); err != nil {
		t.Fatalf("%s\n%v: %s", script, err, out)
	}
}

// shellBlock returns the one block of commands in a page that has this text.
func shellBlock(t *testing.T, path, with string) string {
	t.Helper()

	var found []string

	for i, part := range strings.Split(read(t, path), "```") {
		if script, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 && strings.Contains(script, with) {
			found = append(found, script)
		}
	}

	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q", path, len(found), with)
	}

	return found[0]
}
