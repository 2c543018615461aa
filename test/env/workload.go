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
	// Max is how many clusters may be lent at the same time: Borrow waits. A test that has one must not ask for another then.
	// 0: any number. The shared cluster does not count.
	Max int

	mu       sync.Mutex
	all      []*Hub
	free     []*Hub
	lent     int
	returned sync.Cond // its Locker is mu

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

	cluster, err := p.lend(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		err := cluster.Reset(context.Background())
		if err != nil {
			t.Errorf("the workload cluster is not used again: %v", err)
		}

		p.mu.Lock()
		defer p.mu.Unlock()

		if p.lent--; err == nil {
			p.free = append(p.free, cluster)
		}

		p.returned.Signal()
	})

	return cluster
}

// lend returns a free cluster, or a new one.
func (p *WorkloadPool) lend(ctx context.Context) (*Hub, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.returned.L = &p.mu
	for p.Max > 0 && p.lent >= p.Max {
		p.returned.Wait()
	}

	if last := len(p.free) - 1; last >= 0 {
		cluster := p.free[last]
		p.free = p.free[:last]
		p.lent++

		return cluster, nil
	}

	cluster, err := p.start(ctx)
	if err == nil {
		p.lent++
	}

	return cluster, err
}

// start starts a cluster. The caller has the lock.
func (p *WorkloadPool) start(ctx context.Context) (*Hub, error) {
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
		p.mu.Lock()
		cluster, err := p.start(t.Context())
		p.mu.Unlock()

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
