// Package seats bounds how many runs of a controller work with the same thing
// outside at the same time.
package seats

import "sync"

// slowRuns is how many runs may wait at the same time for what is slow.
const slowRuns = 2

// Seats bounds how many runs work with one thing (an OmniConnection, a workload
// cluster) at the same time, so that one that answers slowly cannot keep all the
// workers that the objects of all of them share. Who finds no seat gives the worker
// back, and is woken when one is free, the longest waiting first. Nobody ever waits
// inside. K names who wants to sit. It is safe for concurrent use.
type Seats[K comparable] struct {
	limit int
	slow  func() bool
	wake  func(K)

	mu      sync.Mutex
	taken   int
	waiting []K            // the longest waiting first
	known   map[K]struct{} // the same
}

// New makes seats; a limit of 0 is no bound. If runs have to be expected to take
// long, as slow tells, there are fewer; it may be nil. wake must not block.
func New[K comparable](limit int, slow func() bool, wake func(K)) *Seats[K] {
	if slow == nil {
		slow = func() bool { return false }
	}

	return &Seats[K]{limit: limit, slow: slow, wake: wake, known: map[K]struct{}{}}
}

// Enter takes a seat; false if there is none.
func (s *Seats[K]) Enter(who K) bool {
	limit := s.limit
	if limit > slowRuns && s.slow() {
		limit = slowRuns
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.limit == 0 || s.taken < limit {
		s.taken++

		return true
	}

	if _, waits := s.known[who]; !waits {
		s.waiting = append(s.waiting, who)
		s.known[who] = struct{}{}
	}

	return false
}

// Empty tells whether nobody sits and nobody waits.
func (s *Seats[K]) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.taken == 0 && len(s.waiting) == 0
}

// Leave gives a seat back. It wakes as many as there are seats, not one: it
// takes a moment until they come, and some have nothing to do any more.
func (s *Seats[K]) Leave() {
	s.mu.Lock()
	s.taken--

	called := min(s.limit, len(s.waiting))
	next := s.waiting[:called:called]
	s.waiting = s.waiting[called:]

	for _, who := range next {
		delete(s.known, who)
	}

	s.mu.Unlock()

	for _, who := range next {
		s.wake(who)
	}
}
