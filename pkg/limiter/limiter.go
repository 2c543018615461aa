// Package limiter bounds how many callers work with one thing at the same time (a connection to Omni, a workload
// cluster, a host of charts), or how much of one thing they hold together (memory), so that one slow or large user
// cannot occupy what all share.
//
// A Limiter serves its callers in the order of their arrival, those of AcquireFirst before all others; smaller requests pass
// those that need more of a total than is free. Acquire waits; it is for goroutines of their own. TryAcquire and Claim do not wait, because runs of
// controllers must not occupy a worker meanwhile: a caller without a slot is woken later. One of Claim then has its slot; of TryAcquire as many
// are woken as may fit, for slots that are held shortly.
//
// The package also has the pauses before a failed operation is tried again (Backoff).
package limiter

import (
	"context"
	"slices"
	"sync"
	"time"
)

// WakePause is how long a run without a slot is postponed. The next free slot wakes it earlier, so this is only for lost
// wake-ups.
const WakePause = 5 * time.Second

// claimTime is how long a slot is kept for a caller of Claim that was woken.
const claimTime = 30 * time.Second

// slowSlots is how many slots a slow key has, so at most this many callers wait for it at the same time.
const slowSlots = 2

// Limits are the numbers of slots; 0 is no bound.
type Limits[K comparable] struct {
	// PerKey is the number of slots of one key, Total that of all keys together.
	PerKey, Total int64
	// Resource returns what a key is of, if keys also name who asks: all keys of a resource have the slots of one together.
	// May be nil.
	Resource func(K) K
	// Slow reports whether slots of a key are likely to be held long. TryAcquire then allows fewer of them. May be nil.
	Slow func(K) bool
	// Tenant returns whose a key is. A tenant then has at most as many slots as are left of Total for all others: half of
	// them while it is alone, and less beside others, so that the next one finds some. May be nil.
	Tenant func(K) K
}

// Limiter bounds how many slots are taken at the same time: for one key (a cluster, a host, a tenant), and in all. A
// slot is the right to work, or a byte of memory. Keys and callers that are gone take no memory. It is safe for
// concurrent use.
type Limiter[K comparable] struct {
	limits Limits[K]

	mu      sync.Mutex
	taken   int64
	keys    map[K]*slots  // by resource
	tenants map[K]int64   // the slots that each has
	queue   []*request[K] // of AcquireFirst, then of Acquire and Claim, each the longest waiting first
	claims  map[string]*request[K]
}

// request is a waiting call of Acquire, or a caller of Claim that waits or was woken.
type request[K comparable] struct {
	key     K
	slots   int64
	first   bool          // before all that are not
	granted chan struct{} // closed when it has them
	waiter  Waiter        // of Claim
}

// New returns a Limiter.
func New[K comparable](limits Limits[K]) *Limiter[K] {
	return &Limiter[K]{limits: limits, keys: map[K]*slots{}, tenants: map[K]int64{}, claims: map[string]*request[K]{}}
}

// Acquire waits for slots. release gives them back; calling it again has no effect. A request for more slots than there
// are gets all of them. The longest waiting caller is first, but smaller requests behind it may pass. The error is that
// of ctx, if ctx ends before.
func (l *Limiter[K]) Acquire(ctx context.Context, key K, slots int64) (release func(), err error) {
	return l.acquire(ctx, &request[K]{key: key, slots: l.most(slots)})
}

// AcquireFirst is Acquire for a caller that comes before all that wait in Acquire.
func (l *Limiter[K]) AcquireFirst(ctx context.Context, key K, slots int64) (release func(), err error) {
	return l.acquire(ctx, &request[K]{key: key, slots: l.most(slots), first: true})
}

func (l *Limiter[K]) acquire(ctx context.Context, asked *request[K]) (release func(), err error) {
	asked.granted = make(chan struct{})
	l.enqueue(asked)

	select {
	case <-asked.granted:
	case <-ctx.Done():
	}

	// Both may have happened at once.
	if err := ctx.Err(); err != nil {
		l.withdraw(asked)

		return nil, err
	}

	return sync.OnceFunc(func() { l.release(asked.key, asked.slots) }), nil
}

// TryAcquire takes slots of a key. release gives them back; calling it again has no effect. If they are not free, ok is
// false, and the waiter, if it has a name, is woken when slots of the key are free. TryAcquire never blocks.
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
		l.of(key).remove(waiter.Name)

		return sync.OnceFunc(func() { l.release(key, slots) }), true
	}

	if waiter.Name != "" {
		l.of(key).add(waiter)
	}

	return nil, false
}

// Claim takes one slot, as TryAcquire does, for a caller that has its place among those that wait in Acquire: when its turn comes, a slot
// is taken for it, and it is woken. If it does not call Claim again within 30 seconds, the next one gets the slot.
func (l *Limiter[K]) Claim(key K, waiter Waiter) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	asked := l.claims[waiter.Name]
	if asked == nil {
		asked = &request[K]{key: key, slots: 1, granted: make(chan struct{}), waiter: waiter}
		l.claims[waiter.Name] = asked

		if !l.grant(asked) {
			l.queue = append(l.queue, asked)
		}
	}

	select {
	case <-asked.granted:
		delete(l.claims, waiter.Name)

		return sync.OnceFunc(func() { l.release(asked.key, asked.slots) }), true
	default:
		return nil, false
	}
}

// Exit is for a caller of Claim that does not wait any more. It may have left already.
func (l *Limiter[K]) Exit(name string) {
	l.mu.Lock()
	asked := l.claims[name]
	l.mu.Unlock()

	l.exit(asked)
}

// exit ends a wait in Claim, unless the caller has its slot or has left.
func (l *Limiter[K]) exit(asked *request[K]) {
	l.mu.Lock()
	waits := asked != nil && l.claims[asked.waiter.Name] == asked

	if waits {
		delete(l.claims, asked.waiter.Name)
	}

	l.mu.Unlock()

	if waits {
		l.withdraw(asked)
	}
}

// Load returns how many slots are taken, and how many calls of Acquire and callers of Claim wait.
func (l *Limiter[K]) Load() (taken int64, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.taken, len(l.queue)
}

// Waiting returns how many callers of TryAcquire of a kind wait, where there is no Total. Those of a key of which no slot is taken
// do not count: they come at once, or are gone.
func (l *Limiter[K]) Waiting(kind string) (waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, own := range l.keys {
		if own.taken == 0 {
			continue
		}

		for i := range own.waiting {
			if own.waiting[i].Kind == kind {
				waiting++
			}
		}
	}

	return waiting
}

// release gives slots back. It wakes as many waiters as the key has slots, not as many as are free: it takes a moment
// until they come, and some no longer need one.
func (l *Limiter[K]) release(key K, slots int64) {
	l.mu.Lock()

	own := l.of(key)
	own.taken -= slots
	l.taken -= slots
	l.count(key, -slots)

	var woken []Waiter

	l.queue = slices.DeleteFunc(l.queue, func(asked *request[K]) bool {
		granted := l.grant(asked)
		if granted && asked.waiter.Wake != nil {
			woken = append(woken, asked.waiter)

			time.AfterFunc(claimTime, func() { l.exit(asked) })
		}

		return granted
	})

	woken = append(woken, own.next(l.limits.PerKey)...)

	// Names of hosts come from users, so their number is not limited.
	if own.unused() {
		delete(l.keys, l.resource(key))
	}

	l.mu.Unlock()

	for _, waiter := range woken {
		waiter.Wake()
	}
}

// enqueue adds a request. No request in the queue could be granted now, so free slots go to the new request.
func (l *Limiter[K]) enqueue(asked *request[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.grant(asked) {
		return
	}

	at := len(l.queue)
	if other := slices.IndexFunc(l.queue, func(before *request[K]) bool { return asked.first && !before.first }); other >= 0 {
		at = other
	}

	l.queue = slices.Insert(l.queue, at, asked)
}

// withdraw removes a request, and gives its slots back if it has them.
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

// fit reports whether the slots are free. The caller holds the lock.
func (l *Limiter[K]) fit(key K, slots, perKey int64) bool {
	if l.limits.Total > 0 && l.taken+slots > l.limits.Total {
		return false
	}

	if l.limits.Total > 0 && l.limits.Tenant != nil && l.tenants[l.limits.Tenant(key)]+slots > l.limits.Total-l.taken {
		return false
	}

	own := l.keys[l.resource(key)]

	return perKey <= 0 || own == nil || own.taken+slots <= perKey
}

// take takes slots. The caller holds the lock.
func (l *Limiter[K]) take(key K, slots int64) {
	l.of(key).taken += slots
	l.taken += slots
	l.count(key, slots)
}

// count adds to the slots of a key's tenant. The caller holds the lock.
func (l *Limiter[K]) count(key K, slots int64) {
	if l.limits.Tenant == nil {
		return
	}

	tenant := l.limits.Tenant(key)
	if l.tenants[tenant] += slots; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}

// of returns the slots of a key. The caller holds the lock.
func (l *Limiter[K]) of(key K) *slots {
	key = l.resource(key)

	found := l.keys[key]
	if found == nil {
		found = &slots{known: map[string]struct{}{}}
		l.keys[key] = found
	}

	return found
}

// resource returns what a key shares its slots with.
func (l *Limiter[K]) resource(key K) K {
	if l.limits.Resource == nil {
		return key
	}

	return l.limits.Resource(key)
}

// most returns how many slots a request gets.
func (l *Limiter[K]) most(slots int64) int64 {
	for _, limit := range []int64{l.limits.PerKey, l.limits.Total} {
		if limit > 0 {
			slots = min(slots, limit)
		}
	}

	return slots
}

// Waiter is a caller of TryAcquire.
type Waiter struct {
	// Name identifies a caller of a key, which waits at most once. A caller without a name does not wait.
	Name string
	// Kind is what Waiting counts a caller as. May be empty.
	Kind string
	// Wake makes the caller try again. It must not block.
	Wake func()
}

// slots are the slots of one key, and the callers that wait for one, the longest waiting first.
type slots struct {
	taken   int64
	waiting []Waiter
	known   map[string]struct{} // the names of the same
}

// add adds a waiter, unless it waits already.
func (s *slots) add(waiter Waiter) {
	if _, waits := s.known[waiter.Name]; !waits {
		s.waiting = append(s.waiting, waiter)
		s.known[waiter.Name] = struct{}{}
	}
}

// remove removes a waiter that has its slots: it tried again by itself.
func (s *slots) remove(name string) {
	if _, waits := s.known[name]; !waits {
		return
	}

	delete(s.known, name)
	s.waiting = slices.DeleteFunc(s.waiting, func(waiter Waiter) bool { return waiter.Name == name })
}

// next removes and returns the first waiters.
func (s *slots) next(most int64) []Waiter {
	woken := slices.Clone(s.waiting[:min(most, int64(len(s.waiting)))])
	s.waiting = slices.Delete(s.waiting, 0, len(woken))

	for _, waiter := range woken {
		delete(s.known, waiter.Name)
	}

	return woken
}

// unused reports whether no caller has a slot or waits for one.
func (s *slots) unused() bool { return s.taken == 0 && len(s.waiting) == 0 }
