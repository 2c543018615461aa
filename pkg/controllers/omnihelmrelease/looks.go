package omnihelmrelease

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// lookTimeout bounds one look.
const lookTimeout = 2 * time.Minute

// looked is the result of a look.
type looked[T any] struct {
	value T
	err   error
	at    time.Time // when it ended
	row   int       // looks in a row that ended with an error, this one included
	until time.Time // how long the result counts
}

// looks asks things that may take long (a chart repository, a comparison with a
// cluster) beside the reconciler, and keeps the answers for a while: a
// reconcile for another reason asks nobody. It is safe for concurrent use.
type looks[T any] struct {
	now func() time.Time
	// ended is called when a look has ended that nobody waits for any more.
	ended func(types.NamespacedName)
	// keep is how long a result counts.
	keep func(fresh time.Duration, result looked[T]) time.Duration

	mu      sync.Mutex
	entries map[types.NamespacedName]*look[T]
}

// look is one question of one object.
type look[T any] struct {
	key       string
	done      chan struct{}
	abandoned bool
	result    looked[T]
}

func newLooks[T any](now func() time.Time, ended func(types.NamespacedName), keep func(time.Duration, looked[T]) time.Duration) *looks[T] {
	return &looks[T]{now: now, ended: ended, keep: keep, entries: map[types.NamespacedName]*look[T]{}}
}

// ask returns the answer to the question that key stands for. If it is not known
// and not there within patience, ok is false, and ended is called when it is.
func (l *looks[T]) ask(name types.NamespacedName, key string, fresh, patience time.Duration, do func(context.Context) (T, error)) (result looked[T], ok bool) {
	entry := l.entry(name, key, fresh, do)

	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case <-entry.done:
	case <-timer.C:
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	select {
	case <-entry.done:
		return entry.result, true
	default:
		entry.abandoned = true

		return looked[T]{}, false
	}
}

// entry finds the look that answers the question, or begins one.
func (l *looks[T]) entry(name types.NamespacedName, key string, fresh time.Duration, do func(context.Context) (T, error)) *look[T] {
	l.mu.Lock()
	defer l.mu.Unlock()

	found := l.entries[name]
	row := 0

	if found != nil && found.key == key {
		select {
		case <-found.done:
			if l.now().Before(found.result.until) {
				return found
			}

			row = found.result.row
		default:
			return found
		}
	}

	begun := &look[T]{key: key, done: make(chan struct{})}
	l.entries[name] = begun

	go l.run(name, begun, row, fresh, do)

	return begun
}

func (l *looks[T]) run(name types.NamespacedName, begun *look[T], row int, fresh time.Duration, do func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()

	value, err := do(ctx)

	l.mu.Lock()

	result := looked[T]{value: value, err: err, at: l.now()}
	if err != nil {
		result.row = row + 1
	}

	result.until = result.at.Add(l.keep(fresh, result))
	begun.result = result

	close(begun.done)

	abandoned := begun.abandoned
	l.mu.Unlock()

	if abandoned {
		l.ended(name)
	}
}

// forget drops what is known of an object that is gone.
func (l *looks[T]) forget(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.entries, name)
}
