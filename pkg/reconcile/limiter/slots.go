package limiter

import "slices"

// Waiter is a caller of TryAcquire.
type Waiter struct {
	// Name tells the callers of one key apart. Each waits once.
	Name string
	// Wake tells the caller to come again. It must not block.
	Wake func()
}

// slots are those of one key, and who was turned away, the longest waiting first.
type slots struct {
	taken   int
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
func (s *slots) next(most int) []Waiter {
	woken := slices.Clone(s.waiting[:min(most, len(s.waiting))])
	s.waiting = slices.Delete(s.waiting, 0, len(woken))

	for _, waiter := range woken {
		delete(s.known, waiter.Name)
	}

	return woken
}
