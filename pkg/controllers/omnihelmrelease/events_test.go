package omnihelmrelease

import (
	"strings"
	"testing"
	"time"
)

// What an action tells beside its end is an event, once.
func TestNotesAreEvents(t *testing.T) {
	f := newFixture(t)
	f.cluster.note = "created namespace apps"
	f.settle()
	f.pass(time.Hour)
	f.settle()

	told := 0

	for _, event := range f.events.New() {
		if strings.Contains(event, "NamespaceCreated release default/app: created namespace apps") {
			told++
		}
	}

	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
