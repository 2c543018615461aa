package limiter

import "slices"

// Waiter is a caller of TryAcquire.
type Waiter struct {
	// Name tells the callers of one key apart. Each waits once; without a name it does not wait.
	Name string
	// Wake tells the caller to come again. It must not block.
	Wake func()
}

// slots are those of one key, and who was turned away, the longest waiting first.
type slots struct {
	taken   int64
	waiting []Waiter
	known   map[string]struct{} // the names of the same
}

// add lets a waiter wait, if it does not yet.
func (s *slots) add(waiter Waiter) {
	if _, waits := s.known[waiter.Name]; !waits {
		s.waiting = append(s.waiting, waiter)
		s.known[waiter.Name] = struct{}{}
	}
}

// next takes the first waiters out.
func (s *slots) next(most int64) []Waiter {
	woken := slices.Clone(s.waiting[:min(most, int64(len(s.waiting)))])
	s.waiting = slices.Delete(s.waiting, 0, len(woken))

	for _, waiter := range woken {
		delete(s.known, waiter.Name)
	}

	return woken
}

// unused reports whether nobody has a slot or waits for one.
func (s *slots) unused() bool { return s.taken == 0 && len(s.waiting) == 0 }
