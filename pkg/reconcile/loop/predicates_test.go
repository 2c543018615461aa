package loop

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyDeletions(t *testing.T) {
	p := OnlyDeletions()

	if !p.Delete(event.DeleteEvent{}) || p.Create(event.CreateEvent{}) || p.Update(event.UpdateEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("not only deletions are accepted")
	}
}

// TestHolds: in a namespace that is not served, nobody knows what holds a Secret.
func TestHolds(t *testing.T) {
	for _, test := range []struct {
		served, finalizer string
		want              bool
	}{
		{"team", "ours", true},
		{"", "ours", true},
		{"other", "ours", false},
		{"team", "theirs", false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Finalizers: []string{test.finalizer}}}
		if got := Holds(test.served, "ours").Create(event.CreateEvent{Object: secret}); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}
