package kubeclient

import (
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/kube"
)

// deletions notes whether objects were seen to be gone. Helm removes the records
// of a release even if they were not. It is safe for concurrent use.
type deletions struct {
	mu  sync.Mutex
	err error
}

// Undeleted is the first error of waiting for deletions, which is why objects may be left; nil if none are.
func (g *Guard) Undeleted() error {
	g.deletions.mu.Lock()
	defer g.deletions.mu.Unlock()

	return g.deletions.err
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (c *guardedClient) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	waiter, err := c.Client.GetWaiterWithOptions(strategy, options...)
	if err != nil {
		return nil, err
	}

	return &deletingWaiter{Waiter: waiter, deletions: &c.guard.deletions}, nil
}

// deletingWaiter notes what comes of waiting for deletions.
type deletingWaiter struct {
	kube.Waiter

	deletions *deletions
}

// WaitForDelete implements kube.Waiter.
func (w *deletingWaiter) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	err := w.Waiter.WaitForDelete(resources, timeout)

	w.deletions.mu.Lock()
	defer w.deletions.mu.Unlock()

	if w.deletions.err == nil {
		w.deletions.err = err
	}

	return err
}
