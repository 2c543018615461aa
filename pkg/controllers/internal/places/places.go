// Package places limits what is done at once, in all and in one group.
package places

import (
	"context"
	"sync"
)

// Places limits what is done at once: so much in all, and less in one group (a
// cluster, or a host of charts), so that a stuck one leaves room for the others.
// It is safe for concurrent use.
type Places struct {
	all      chan struct{}
	perGroup int

	mu     sync.Mutex
	groups map[string]*group
}

// group is what waits for, or has, a place of one group.
type group struct {
	slots chan struct{}
	users int
}

// New makes places: so many in all, and so many for each group; at least one.
func New(parallel, perGroup int) *Places {
	return &Places{all: make(chan struct{}, max(1, parallel)), perGroup: max(1, perGroup), groups: map[string]*group{}}
}

// Run does something in one of the places of its group and of all. It returns
// false, and does nothing, if ctx ends before there is one.
func (p *Places) Run(ctx context.Context, name string, do func()) bool {
	own := p.enter(name)
	defer p.leave(name)

	for _, slots := range []chan struct{}{own, p.all} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
		}

		// Both may have come at once.
		if ctx.Err() != nil {
			return false
		}
	}

	do()

	return true
}

func (p *Places) enter(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()

	found := p.groups[name]
	if found == nil {
		found = &group{slots: make(chan struct{}, p.perGroup)}
		p.groups[name] = found
	}

	found.users++

	return found.slots
}

// leave forgets a group that nobody uses: names of hosts come from users, and
// there is no end to them.
func (p *Places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if found := p.groups[name]; found.users > 1 {
		found.users--
	} else {
		delete(p.groups, name)
	}
}
