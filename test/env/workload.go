package env

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// WorkloadPool lends workload clusters to tests: real control planes (etcd, kube-apiserver,
// kube-controller-manager), each with its own authorities and identity. A cluster takes three
// seconds and 450 MB, so a package of tests has one pool and Stops it at its end; clusters are
// emptied and used again. The zero value is usable, its methods from several goroutines.
type WorkloadPool struct {
	// Options start each cluster. Dir must be empty: every cluster has its own.
	Options Options

	mu   sync.Mutex
	all  []*Hub
	free []*Hub

	sharing sync.Mutex // held while the shared cluster starts
	shared  *Hub
}

// Borrower is the part of *testing.T that Borrow needs.
type Borrower interface {
	Context() context.Context
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Helper()
}

// Borrow returns a cluster that nobody else uses until the test ends, and starts one if none is
// free. It holds no objects but Kubernetes' own. When the test ends Reset empties it; what a test
// writes into kube-system stays. The administrator's kubeconfig is KubeconfigPath; further
// identities are made by KubeconfigFor and RESTConfigFor.
func (p *WorkloadPool) Borrow(t Borrower) *Hub {
	t.Helper()

	cluster, err := p.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := cluster.Reset(context.Background()); err != nil {
			t.Errorf("the workload cluster is not used again: %v", err)

			return
		}

		p.mu.Lock()
		defer p.mu.Unlock()

		p.free = append(p.free, cluster)
	})

	return cluster
}

func (p *WorkloadPool) take(ctx context.Context) (*Hub, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if last := len(p.free) - 1; last >= 0 {
		cluster := p.free[last]
		p.free = p.free[:last]

		return cluster, nil
	}

	cluster, err := StartHub(ctx, p.Options)
	if err != nil {
		return nil, fmt.Errorf("start workload cluster: %w", err)
	}

	p.all = append(p.all, cluster)

	return cluster, nil
}

// Shared returns a cluster that all tests of the package use at once, and starts it at the first
// call. A test keeps to namespaces of its own. Its objects stay until Stop.
func (p *WorkloadPool) Shared(t Borrower) *Hub {
	t.Helper()

	p.sharing.Lock()
	defer p.sharing.Unlock()

	if p.shared == nil {
		cluster, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		p.shared = cluster
	}

	return p.shared
}

// Stop stops all clusters, lent ones as well, at the same time: each takes seconds.
func (p *WorkloadPool) Stop() error {
	p.mu.Lock()
	all := p.all
	p.all, p.free = nil, nil
	p.mu.Unlock()

	errs := make([]error, len(all))

	var stopping sync.WaitGroup

	for i, cluster := range all {
		stopping.Go(func() { errs[i] = cluster.Stop() })
	}

	stopping.Wait()

	return errors.Join(errs...)
}
