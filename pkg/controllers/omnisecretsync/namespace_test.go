package omnisecretsync

import (
	"strings"
	"testing"
)

// A namespace that is made is told of when it is made, and again when it stays behind.
func TestNamespaceIsToldOf(t *testing.T) {
	m := newMover(t)
	m.store.missing, m.sync.Spec.CreateNamespace = "fresh", true
	m.to("fresh", "a")
	m.settle()
	m.run()

	var told []string
	for len(m.told.Events) > 0 {
		told = append(told, <-m.told.Events)
	}

	if text := strings.Join(told, "\n"); strings.Count(text, "NamespaceCreated Created namespace fresh") != 1 {
		t.Errorf("events:\n%s", text)
	}

	m.remove()
	m.says("Deleted Secret fresh/a in the workload cluster; namespace fresh stays")
}
