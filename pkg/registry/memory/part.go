package memory

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Part is what a request takes of a budget, given back when the last of those who work for the request is done. The library
// answers a request that ran out of time, or whose client has gone, while the work for it goes on.
type Part struct {
	giveBack func()

	mu      sync.Mutex
	holders int
}

// partKey is the context key of a request's part.
type partKey struct{}

// NewPart makes a part that its maker holds. giveBack is called once, when nobody holds it any more.
func NewPart(giveBack func()) *Part {
	return &Part{giveBack: giveBack, holders: 1}
}

// Release ends the hold of the part's maker, or of one who retained it. Each holder calls it once.
func (p *Part) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.holders--; p.holders == 0 {
		p.giveBack()
	}
}

// retain adds a holder. It reports false if nobody holds the part any more.
func (p *Part) retain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.holders == 0 {
		return false
	}

	p.holders++

	return true
}

// WithPart stores a request's part in the request's context.
func WithPart(ctx context.Context, part *Part) context.Context {
	return context.WithValue(ctx, partKey{}, part)
}

// Retain holds the part of a request until the returned function is called. It fails if the part was given back: the
// request has ended, and work for it would take memory that nobody counts. A request without a part has nothing to hold.
func Retain(ctx context.Context) (release func(), err error) {
	part, found := ctx.Value(partKey{}).(*Part)
	if !found {
		return func() {}, nil
	}

	if !part.retain() {
		return nil, apierrors.NewTimeoutError("the request ended before its work began", 0)
	}

	return part.Release, nil
}
