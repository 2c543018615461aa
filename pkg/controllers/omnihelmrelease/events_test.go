package omnihelmrelease

import (
	"strings"
	"testing"
	"time"
)

// What an action tells beside its end is an event, once.
func TestNotesAreEvents(t *testing.T) {
	b := newBench(t)
	b.cluster.note = "created namespace apps"
	b.settle()
	b.pass(time.Hour)
	b.settle()

	told := 0

	for len(b.events.Events) > 0 {
		if event := <-b.events.Events; strings.Contains(event, "NamespaceCreated release default/app: created namespace apps") {
			told++
		}
	}

	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
