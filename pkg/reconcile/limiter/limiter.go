package limiter

import "sync"

// slowRuns is how many runs may wait at the same time for what is slow.
const slowRuns = 2

// Limiter bounds how many runs work with one thing (an OmniConnection, a workload
// cluster) at the same time, so that one that answers slowly cannot keep all the
// workers that the objects of all of them share. Who finds no slot gives the worker
// back, and is woken when one is free, the longest waiting first. Nobody ever waits
// inside. K names who wants a slot. It is safe for concurrent use.
type Limiter[K comparable] struct {
	limit int
	slow  func() bool
	wake  func(K)

	mu      sync.Mutex
	taken   int
	waiting []K            // the longest waiting first
	known   map[K]struct{} // the same
}

// New makes a Limiter; a limit of 0 is no bound. If runs have to be expected to take
// long, as slow tells, there are fewer; it may be nil. wake must not block.
func New[K comparable](limit int, slow func() bool, wake func(K)) *Limiter[K] {
	if slow == nil {
		slow = func() bool { return false }
	}

	return &Limiter[K]{limit: limit, slow: slow, wake: wake, known: map[K]struct{}{}}
}

// Enter takes a slot; false if there is none.
func (l *Limiter[K]) Enter(who K) bool {
	limit := l.limit
	if limit > slowRuns && l.slow() {
		limit = slowRuns
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.limit == 0 || l.taken < limit {
		l.taken++

		return true
	}

	if _, waits := l.known[who]; !waits {
		l.waiting = append(l.waiting, who)
		l.known[who] = struct{}{}
	}

	return false
}

// Empty tells whether nobody has a slot and nobody waits.
func (l *Limiter[K]) Empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.taken == 0 && len(l.waiting) == 0
}

// Leave gives a slot back. It wakes as many as there are slots, not one: it
// takes a moment until they come, and some have nothing to do any more.
func (l *Limiter[K]) Leave() {
	l.mu.Lock()
	l.taken--

	called := min(l.limit, len(l.waiting))
	next := l.waiting[:called:called]
	l.waiting = l.waiting[called:]

	for _, who := range next {
		delete(l.known, who)
	}

	l.mu.Unlock()

	for _, who := range next {
		l.wake(who)
	}
}
