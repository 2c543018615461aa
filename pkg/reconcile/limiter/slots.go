package limiter

import "slices"

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
