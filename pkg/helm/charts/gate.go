package charts

import (
	"context"
	"sync"
)

// smallBytes is how much of an answer is read without one of the places for
// large ones.
const smallBytes = 1 << 20

// gate limits what is on its way at once: so much of one host, and so many large
// answers in all. The second limit is what bounds memory; a place of it is taken
// only when an answer has shown that it is large, so that a host that hangs, or
// has little to say, takes none from the others. It is safe for concurrent use.
type gate struct {
	perHost int
	large   chan struct{}

	mu    sync.Mutex
	hosts map[string]*host
}

// host is what is on its way from one host, or waits for that.
type host struct {
	slots chan struct{}
	users int
}

func newGate(large int) *gate {
	// Half of the places, so that one host never has all of them.
	return &gate{perHost: max(1, large/2), large: make(chan struct{}, large), hosts: map[string]*host{}}
}

// enter waits for a place of a host; leave gives it back.
func (g *gate) enter(ctx context.Context, name string) (leave func(), err error) {
	g.mu.Lock()

	found := g.hosts[name]
	if found == nil {
		found = &host{slots: make(chan struct{}, g.perHost)}
		g.hosts[name] = found
	}

	found.users++
	g.mu.Unlock()

	// Names of hosts come from users, and there is no end to them.
	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()

		if found.users--; found.users == 0 {
			delete(g.hosts, name)
		}
	}

	if err := take(ctx, found.slots); err != nil {
		forget()

		return nil, fail(Timeout, "%s is too slow: this download waited in vain for others from there", name)
	}

	return func() { <-found.slots; forget() }, nil
}

// enterLarge waits for one of the places for large answers.
func (g *gate) enterLarge(ctx context.Context) (leave func(), err error) {
	if err := take(ctx, g.large); err != nil {
		return nil, fail(Timeout, "too many large charts and indexes are being downloaded; this one waited in vain")
	}

	return func() { <-g.large }, nil
}

func take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
