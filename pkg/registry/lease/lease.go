// Package lease gives back what a request takes of a shared budget when the last of those who work for the request is
// done. The library answers a request that ran out of time, or whose client has gone, while the work for it goes on.
package lease

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lease is a part of a budget with the number of those who hold it.
type Lease struct {
	giveBack func()

	mu      sync.Mutex
	holders int
}

// key is the context key of a request's lease.
type key struct{}

// New makes a lease that its maker holds. giveBack is called once, when nobody holds it any more.
func New(giveBack func()) *Lease {
	return &Lease{giveBack: giveBack, holders: 1}
}

// Release ends the hold of the lease's maker, or of one who retained it. Each holder calls it once.
func (l *Lease) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.holders--; l.holders == 0 {
		l.giveBack()
	}
}

// retain adds a holder. It reports false if nobody holds the lease any more.
func (l *Lease) retain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.holders == 0 {
		return false
	}

	l.holders++

	return true
}

// With stores a request's lease in the request's context.
func With(ctx context.Context, lease *Lease) context.Context {
	return context.WithValue(ctx, key{}, lease)
}

// Retain holds the lease of a request until the returned function is called. It fails if the lease was given back: the
// request has ended, and work for it would take memory that nobody counts. A request without a lease has nothing to hold.
func Retain(ctx context.Context) (release func(), err error) {
	lease, found := ctx.Value(key{}).(*Lease)
	if !found {
		return func() {}, nil
	}

	if !lease.retain() {
		return nil, apierrors.NewTimeoutError("the request ended before its work began", 0)
	}

	return lease.Release, nil
}
