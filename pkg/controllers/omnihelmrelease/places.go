package omnihelmrelease

import (
	"context"
	"fmt"
	"sync"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/helm"
)

// places limits what is done at once: so much in all, and less in one group (a
// cluster, or a host of charts), so that a stuck one leaves room for the others.
// It is safe for concurrent use.
type places struct {
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

func newPlaces(parallel, perGroup int) *places {
	return &places{all: make(chan struct{}, max(1, parallel)), perGroup: max(1, perGroup), groups: map[string]*group{}}
}

// run does something in one of the places of its group and of all. It returns
// false, and does nothing, if ctx ends before there is one.
func (p *places) run(ctx context.Context, name string, do func()) bool {
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

func (p *places) enter(name string) chan struct{} {
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
func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if found := p.groups[name]; found.users > 1 {
		found.users--
	} else {
		delete(p.groups, name)
	}
}

// sheltered makes an error of a panic: what one release makes fail must not end
// the controller with all others. The text of a panic may hold anything.
func sheltered(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &helm.Error{Reason: helm.ReasonFailed, Message: fmt.Sprintf("a fault of the controller stopped this (panic of type %T)", cause)}
		}
	}()

	return do()
}
