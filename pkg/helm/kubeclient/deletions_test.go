package kubeclient

import (
	"errors"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
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
	d := &Deletions{}
	left := errors.New("a ConfigMap is still there")

	for _, err := range []error{nil, left, errors.New("and another"), nil} {
		if got := (&deletingWaiter{Waiter: waiter{err: err}, deletions: d}).WaitForDelete(nil, time.Second); !errors.Is(got, err) {
			t.Errorf("returned %v, want %v", got, err)
		}
	}

	if !errors.Is(d.Failure(), left) {
		t.Errorf("the failure is %v", d.Failure())
	}

	config := &action.Configuration{KubeClient: &kube.Client{}}
	if err := d.Watch(config); err != nil {
		t.Fatal(err)
	}

	if _, ok := config.KubeClient.(kube.InterfaceWaitOptions); !ok {
		t.Error("the client has lost its options")
	}

	if err := d.Watch(&action.Configuration{}); err == nil {
		t.Error("no client is not told of")
	}
}
