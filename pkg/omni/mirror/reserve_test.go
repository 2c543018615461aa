package mirror

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// TestPageSaysWhatAConnectionReserves: another kind is another watch, and so changes what docs/concepts/limits.md says of each
// connection and of how many there may be.
func TestPageSaysWhatAConnectionReserves(t *testing.T) {
	text, err := os.ReadFile("../../../docs/concepts/limits.md")
	if err != nil {
		t.Fatal(err)
	}

	page := strings.Join(strings.Fields(string(text)), " ") // whatever the line breaks
	reserved := len(mirroredKinds()) * (bounds.FirstEvent + bounds.StreamWindow)

	if want := fmt.Sprintf("Each connection reserves %.1f MiB besides, for what is on its way: the default total is enough for %d of them.",
		float64(reserved)/(1<<20), bounds.DefaultTotalMemory/reserved); !strings.Contains(page, want) {
		t.Errorf("docs/concepts/limits.md does not say: %s", want)
	}
}
