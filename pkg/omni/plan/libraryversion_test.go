package plan_test

import (
	"os"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// TestLibraryVersion compares what conditions say of the client library with what is built.
func TestLibraryVersion(t *testing.T) {
	modules, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}

	if want := "github.com/siderolabs/omni/client v" + plan.LibraryVersion + "\n"; !strings.Contains(string(modules), want) {
		t.Errorf("go.mod does not require %s", want)
	}
}
