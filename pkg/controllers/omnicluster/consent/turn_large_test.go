package consent

import (
	"fmt"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// patched returns the full template with patches whose names begin with prefix.
func patched(prefix string, count int) string {
	var text strings.Builder

	text.WriteString("patches:\n")

	for i := range count {
		fmt.Fprintf(&text, "- name: %s-%03d\n  inline: {machine: {sysctls: {net.ipv4.number: \"%d\"}}}\n", prefix, i, i)
	}

	return omnitest.ClusterDocument + text.String() + omnitest.ControlPlaneDocument + omnitest.WorkersDocument
}

// A turn that does not cover all changes makes what comes first in the plan: no patch goes before all new ones are there.
func TestTurnOfManyChanges(t *testing.T) {
	const count = 200

	tt := newTurns(t)
	plantest.Sync(t, tt.omni, patched("old", count))

	tt.template, tt.wait = patched("new", count), closed()
	tt.run()
	tt.ticket()

	tt.wait = Wait{}
	if d := tt.run(); len(d.Done()) != maxGated {
		t.Fatalf("a turn made %d changes", len(d.Done()))
	}

	items, err := omni.ListOf(t.Context(), tt.omni, omnires.ConfigPatchType, "demo")
	if err != nil {
		t.Fatal(err)
	}

	there := map[string]bool{}

	for _, item := range items {
		for _, prefix := range []string{"old", "new"} {
			if _, number, found := strings.Cut(item.Metadata().ID(), prefix+"-"); found {
				there[number[:3]] = true
			}
		}
	}

	if len(there) != count {
		t.Errorf("Omni has the content of %d of %d patches", len(there), count)
	}
}
