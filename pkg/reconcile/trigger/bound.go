package trigger

import "sync"

// Bound limits how many keys of a trigger wait to be handled, for keys that somebody else invents.
type Bound[K comparable] struct {
	// Keys is how many keys of one group may wait.
	Keys int
	// GroupOf returns the group of a key.
	GroupOf func(K) string
	// Instead is called with a group for each of its keys that is dropped, because too many wait. It must not block, and
	// has to see to it that whatever the key concerns is looked at.
	Instead func(group string)
}

// waiting counts the keys that were fired and are not handled yet. A nil one has no bound.
type waiting[K comparable] struct {
	bound Bound[K]

	mu     sync.Mutex
	groups map[string]map[K]struct{}
}

// admit reports whether a key may wait. If not, Instead was called.
func (w *waiting[K]) admit(key K) bool {
	if w == nil {
		return true
	}

	group := w.bound.GroupOf(key)
	admitted := w.add(group, key)

	if !admitted {
		w.bound.Instead(group)
	}

	return admitted
}

func (w *waiting[K]) add(group string, key K) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	keys := w.groups[group]

	if _, known := keys[key]; known {
		return true
	}

	if len(keys) >= w.bound.Keys {
		return false
	}

	if keys == nil {
		keys = map[K]struct{}{}
		w.groups[group] = keys
	}

	keys[key] = struct{}{}

	return true
}

// handle records that a key waits no longer.
func (w *waiting[K]) handle(key K) {
	if w == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	group := w.bound.GroupOf(key)
	delete(w.groups[group], key)

	if len(w.groups[group]) == 0 {
		delete(w.groups, group)
	}
}
