package kubeclient

import (
	"fmt"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
)

// Deletions notes whether objects were seen to be gone. Helm removes the records
// of a release even if they were not. It is safe for concurrent use.
type Deletions struct {
	mu  sync.Mutex
	err error
}

// Failure is the first error of waiting for deletions, which is why objects may be left; nil if none are.
func (d *Deletions) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.err
}

// Watch makes an action tell what came of waiting for deletions. The error is that of a configuration without the client
// that Helm makes.
func (d *Deletions) Watch(config *action.Configuration) error {
	client, err := clientOf(config)
	if err != nil {
		return err
	}

	config.KubeClient = &deletingClient{Client: client, deletions: d}

	return nil
}

// clientOf returns the client that Helm made for a configuration. It fails if there is another one.
func clientOf(config *action.Configuration) (*kube.Client, error) {
	client, ok := config.KubeClient.(*kube.Client)
	if !ok {
		return nil, fmt.Errorf("the client of Helm has the unknown type %T", config.KubeClient)
	}

	return client, nil
}

// deletingClient is Helm's client; its waiters are watched.
type deletingClient struct {
	*kube.Client

	deletions *Deletions
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (c *deletingClient) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	waiter, err := c.Client.GetWaiterWithOptions(strategy, options...)
	if err != nil {
		return nil, err
	}

	return &deletingWaiter{Waiter: waiter, deletions: c.deletions}, nil
}

// deletingWaiter notes what comes of waiting for deletions.
type deletingWaiter struct {
	kube.Waiter

	deletions *Deletions
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
