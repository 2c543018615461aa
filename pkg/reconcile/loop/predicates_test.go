package loop

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyDeletions(t *testing.T) {
	p := OnlyDeletions()

	if !p.Delete(event.DeleteEvent{}) || p.Create(event.CreateEvent{}) || p.Update(event.UpdateEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("not only deletions are accepted")
	}
}
