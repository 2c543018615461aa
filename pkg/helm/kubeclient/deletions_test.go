package kubeclient

import (
	"errors"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/kube"
)

// waiter is a kube.Waiter of which only WaitForDelete is used.
type waiter struct {
	kube.Waiter

	err error
}

// WaitForDelete implements kube.Waiter.
func (w waiter) WaitForDelete(kube.ResourceList, time.Duration) error { return w.err }

func TestDeletions(t *testing.T) {
	g := &Guard{}
	left := errors.New("a ConfigMap is still there")

	for _, err := range []error{nil, left, errors.New("and another"), nil} {
		if got := (&deletingWaiter{Waiter: waiter{err: err}, deletions: &g.deletions}).WaitForDelete(nil, time.Second); !errors.Is(got, err) {
			t.Errorf("returned %v, want %v", got, err)
		}
	}

	if !errors.Is(g.Undeleted(), left) {
		t.Errorf("the failure is %v", g.Undeleted())
	}
}
