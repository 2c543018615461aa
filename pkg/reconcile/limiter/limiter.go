package limiter

import (
	"context"
	"slices"
	"sync"
)

// slowSlots is how many slots a slow key has: so many may wait at the same time for
// what is slow.
const slowSlots = 2

// Limits are how many slots there are; 0 is no bound.
type Limits[K comparable] struct {
	// PerKey is how many slots one key has.
	PerKey int
	// Total is how many slots all keys have together. Only Acquire knows it.
	Total int
	// Slow reports whether who gets a slot of a key has to be expected to keep it long.
	// Then TryAcquire has fewer for that key. May be nil.
	Slow func(K) bool
}

// Limiter bounds how many have a slot at the same time: of one key (a cluster, a host),
// and in all. Keys and callers that are gone take no memory. It is safe for concurrent
// use.
type Limiter[K comparable] struct {
	limits Limits[K]

	mu    sync.Mutex
	taken int
	keys  map[K]*slots
	queue []*request[K] // of Acquire, the longest waiting first
}

// request is a call of Acquire that waits.
type request[K comparable] struct {
	key     K
	granted chan struct{} // closed with the slot
}

// New makes a Limiter.
func New[K comparable](limits Limits[K]) *Limiter[K] {
	return &Limiter[K]{limits: limits, keys: map[K]*slots{}}
}

// Acquire waits for a slot, which release gives back; more than once does no harm.
// Among those whose key has a free one the longest waiting is the first. The error is
// that of ctx, if it ends before.
func (l *Limiter[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	asked := l.enqueue(key)

	select {
	case <-asked.granted:
	case <-ctx.Done():
	}

	// Both may have come at once.
	if err := ctx.Err(); err != nil {
		l.withdraw(asked)

		return nil, err //nolint:wrapcheck // the callers say what was waited for
	}

	return sync.OnceFunc(func() { l.release(key) }), nil
}

// TryAcquire takes a slot of a key, which release gives back; more than once does no
// harm. If there is none, ok is false, and the waiter is woken when one is free. Nobody
// ever waits inside.
func (l *Limiter[K]) TryAcquire(key K, waiter Waiter) (release func(), ok bool) {
	limit := l.limits.PerKey
	if limit > slowSlots && l.limits.Slow != nil && l.limits.Slow(key) {
		limit = slowSlots
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	own := l.of(key)
	if below(own.taken, limit) {
		l.take(key)

		return sync.OnceFunc(func() { l.release(key) }), true
	}

	own.add(waiter)

	return nil, false
}

// Idle reports whether nobody has a slot and nobody waits.
func (l *Limiter[K]) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return len(l.keys) == 0 && len(l.queue) == 0
}

// release gives a slot back. It wakes as many of those that were turned away as the key
// has slots, not one: it takes a moment until they come, and some have nothing to do
// any more.
func (l *Limiter[K]) release(key K) {
	l.mu.Lock()

	own := l.of(key)
	own.taken--
	l.taken--
	l.queue = slices.DeleteFunc(l.queue, l.grant)

	woken := own.next(l.limits.PerKey)
	l.forgetUnused(key)
	l.mu.Unlock()

	for _, waiter := range woken {
		waiter.Wake()
	}
}

// enqueue asks for a slot. Nobody in the queue could have one now, so a free one is the
// new request's.
func (l *Limiter[K]) enqueue(key K) *request[K] {
	asked := &request[K]{key: key, granted: make(chan struct{})}

	l.mu.Lock()
	defer l.mu.Unlock()

	if !l.grant(asked) {
		l.queue = append(l.queue, asked)
	}

	return asked
}

// withdraw takes a request back, and its slot if it has one.
func (l *Limiter[K]) withdraw(asked *request[K]) {
	l.mu.Lock()
	waits := slices.Index(l.queue, asked)

	if waits >= 0 {
		l.queue = slices.Delete(l.queue, waits, waits+1)
	}

	l.mu.Unlock()

	if waits < 0 {
		l.release(asked.key)
	}
}

// grant gives a request its slot if there is one. The caller holds the lock.
func (l *Limiter[K]) grant(asked *request[K]) bool {
	if !below(l.taken, l.limits.Total) || !below(l.of(asked.key).taken, l.limits.PerKey) {
		return false
	}

	l.take(asked.key)
	close(asked.granted)

	return true
}

// take takes a slot. The caller holds the lock.
func (l *Limiter[K]) take(key K) {
	l.of(key).taken++
	l.taken++
}

// of finds the slots of a key. The caller holds the lock.
func (l *Limiter[K]) of(key K) *slots {
	found := l.keys[key]
	if found == nil {
		found = &slots{known: map[string]struct{}{}}
		l.keys[key] = found
	}

	return found
}

// forgetUnused drops a key that nobody uses: names of hosts come from users, and there is
// no end to them. The caller holds the lock.
func (l *Limiter[K]) forgetUnused(key K) {
	if own := l.keys[key]; own.taken == 0 && len(own.waiting) == 0 {
		delete(l.keys, key)
	}
}

func below(taken, limit int) bool { return limit <= 0 || taken < limit }
