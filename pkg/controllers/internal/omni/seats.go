package omni

import "sync"

// slowRuns is how many runs may wait for a slow Omni at the same time.
const slowRuns = 2

// seats bounds how many runs work with one connection at the same time, so that
// an Omni that answers slowly cannot keep all the workers that clusters of all
// connections share. Who finds no seat gives the worker back, and is woken when
// one is free, the longest waiting first. Nobody ever waits inside.
type seats struct {
	limit int                  // 0: no bound
	slow  func() bool          // tells whether runs have to be expected to take long
	wake  func(cluster string) // must not block

	mu      sync.Mutex
	taken   int
	waiting []string            // clusters, the longest waiting first
	known   map[string]struct{} // the same
}

func newSeats(limit int, slow func() bool, wake func(string)) *seats {
	return &seats{limit: limit, slow: slow, wake: wake, known: map[string]struct{}{}}
}

// enter takes a seat for a run of a cluster; false if there is none.
func (s *seats) enter(cluster string) bool {
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

	if _, waits := s.known[cluster]; !waits {
		s.waiting = append(s.waiting, cluster)
		s.known[cluster] = struct{}{}
	}

	return false
}

// leave gives a seat back. It wakes as many as there are seats, not one: it
// takes a moment until they come, and some have nothing to do any more.
func (s *seats) leave() {
	s.mu.Lock()
	s.taken--

	called := min(s.limit, len(s.waiting))
	next := s.waiting[:called:called]
	s.waiting = s.waiting[called:]

	for _, cluster := range next {
		delete(s.known, cluster)
	}

	s.mu.Unlock()

	for _, cluster := range next {
		s.wake(cluster)
	}
}
