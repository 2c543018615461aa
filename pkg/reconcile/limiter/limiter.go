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
	// PerKey is how many slots one key may have, Total all keys together.
	PerKey, Total int64
	// Slow reports whether who gets a slot of a key has to be expected to keep it long.
	// Then TryAcquire has fewer for that key. May be nil.
	Slow func(K) bool
}

// Limiter bounds how many slots are taken at the same time: of one key (a cluster, a
// host, a tenant), and in all. A slot is the right to work, or a byte of memory. Keys
// and callers that are gone take no memory. It is safe for concurrent use.
type Limiter[K comparable] struct {
	limits Limits[K]

	mu    sync.Mutex
	taken int64
	keys  map[K]*slots
	queue []*request[K] // of Acquire, the longest waiting first
}

// request is a call of Acquire that waits.
type request[K comparable] struct {
	key     K
	slots   int64
	granted chan struct{} // closed when it has them
}

// New makes a Limiter.
func New[K comparable](limits Limits[K]) *Limiter[K] {
	return &Limiter[K]{limits: limits, keys: map[K]*slots{}}
}

// Acquire waits for so many slots, which release gives back; more than once does no
// harm. Who asks for more than there can be gets all of them. The longest waiting is the
// first, but passed by those behind that fit. The error is that of ctx, if it ends
// before.
func (l *Limiter[K]) Acquire(ctx context.Context, key K, slots int64) (release func(), err error) {
	asked := l.enqueue(key, l.most(slots))

	select {
	case <-asked.granted:
	case <-ctx.Done():
	}

	// Both may have come at once.
	if err := ctx.Err(); err != nil {
		l.withdraw(asked)

		return nil, err // the callers say what was waited for
	}

	return sync.OnceFunc(func() { l.release(key, asked.slots) }), nil
}

// TryAcquire takes so many slots of a key, which release gives back; more than once does
// no harm. If they are not free, ok is false, and the waiter, if it has a name, is woken
// when some of the key are. Nobody ever waits inside.
func (l *Limiter[K]) TryAcquire(key K, slots int64, waiter Waiter) (release func(), ok bool) {
	slots = l.most(slots)

	limit := l.limits.PerKey
	if limit > slowSlots && l.limits.Slow != nil && l.limits.Slow(key) {
		limit = slowSlots
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.fit(key, slots, limit) {
		l.take(key, slots)

		return sync.OnceFunc(func() { l.release(key, slots) }), true
	}

	if waiter.Name != "" {
		l.of(key).add(waiter)
	}

	return nil, false
}

// Load tells how many slots are taken, and how many calls of Acquire wait.
func (l *Limiter[K]) Load() (taken int64, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.taken, len(l.queue)
}

// release gives slots back. It wakes as many of those that were turned away as the key
// has slots, not as many as are free: it takes a moment until they come, and some have
// nothing to do any more.
func (l *Limiter[K]) release(key K, slots int64) {
	l.mu.Lock()

	own := l.of(key)
	own.taken -= slots
	l.taken -= slots
	l.queue = slices.DeleteFunc(l.queue, l.grant)

	woken := own.next(l.limits.PerKey)

	// Names of hosts come from users, and there is no end to them.
	if own.unused() {
		delete(l.keys, key)
	}

	l.mu.Unlock()

	for _, waiter := range woken {
		waiter.Wake()
	}
}

// enqueue asks for slots. Nobody in the queue could have theirs now, so what is free is
// the new request's.
func (l *Limiter[K]) enqueue(key K, slots int64) *request[K] {
	asked := &request[K]{key: key, slots: slots, granted: make(chan struct{})}

	l.mu.Lock()
	defer l.mu.Unlock()

	if !l.grant(asked) {
		l.queue = append(l.queue, asked)
	}

	return asked
}

// withdraw takes a request back, and its slots if it has them.
func (l *Limiter[K]) withdraw(asked *request[K]) {
	l.mu.Lock()
	waits := slices.Index(l.queue, asked)

	if waits >= 0 {
		l.queue = slices.Delete(l.queue, waits, waits+1)
	}

	l.mu.Unlock()

	if waits < 0 {
		l.release(asked.key, asked.slots)
	}
}

// grant gives a request its slots if they are free. The caller holds the lock.
func (l *Limiter[K]) grant(asked *request[K]) bool {
	if !l.fit(asked.key, asked.slots, l.limits.PerKey) {
		return false
	}

	l.take(asked.key, asked.slots)
	close(asked.granted)

	return true
}

// fit reports whether so many slots are free. The caller holds the lock.
func (l *Limiter[K]) fit(key K, slots, perKey int64) bool {
	if l.limits.Total > 0 && l.taken+slots > l.limits.Total {
		return false
	}

	return perKey <= 0 || l.keys[key] == nil || l.keys[key].taken+slots <= perKey
}

// take takes slots. The caller holds the lock.
func (l *Limiter[K]) take(key K, slots int64) {
	l.of(key).taken += slots
	l.taken += slots
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

// most is how many slots a request for so many gets.
func (l *Limiter[K]) most(slots int64) int64 {
	for _, limit := range []int64{l.limits.PerKey, l.limits.Total} {
		if limit > 0 {
			slots = min(slots, limit)
		}
	}

	return slots
}
