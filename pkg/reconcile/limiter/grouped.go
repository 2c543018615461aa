package limiter

import (
	"context"
	"sync"
)

// Grouped limits what is done at once: so much in all, and less in one group (a
// cluster, or a host of charts), so that a stuck one leaves room for the others.
// It is safe for concurrent use.
type Grouped struct {
	all      chan struct{}
	perGroup int

	mu     sync.Mutex
	groups map[string]*group
}

// group is what waits for, or has, a slot of one group.
type group struct {
	slots chan struct{}
	users int
}

// NewGrouped makes a Grouped: so many in all, and so many for each group; at least one.
func NewGrouped(parallel, perGroup int) *Grouped {
	return &Grouped{all: make(chan struct{}, max(1, parallel)), perGroup: max(1, perGroup), groups: map[string]*group{}}
}

// Run does something in one of the slots of its group and of all. It returns
// false, and does nothing, if ctx ends before there is one.
func (g *Grouped) Run(ctx context.Context, name string, do func()) bool {
	own := g.enter(name)
	defer g.leave(name)

	for _, slots := range []chan struct{}{own, g.all} {
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

func (g *Grouped) enter(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()

	found := g.groups[name]
	if found == nil {
		found = &group{slots: make(chan struct{}, g.perGroup)}
		g.groups[name] = found
	}

	found.users++

	return found.slots
}

// leave forgets a group that nobody uses: names of hosts come from users, and
// there is no end to them.
func (g *Grouped) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if found := g.groups[name]; found.users > 1 {
		found.users--
	} else {
		delete(g.groups, name)
	}
}
