package omnihelmrelease

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
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

// question is what a look answers.
type question struct {
	key   string // changes with everything that decides about the answer
	group string // who is asked, for the limit on what is asked at once
}

// looks asks things that may take long (a chart repository, a comparison with a
// cluster) beside the reconciler, and keeps the answers for a while: a
// reconcile for another reason asks nobody. Only so many are asked at once, and
// what nobody wants to know any more is given up. It is safe for concurrent use.
type looks[T any] struct {
	limiter *limiter.Limiter[string]
	now     func() time.Time
	// ended is called when a look has ended that nobody waits for any more.
	ended func(types.NamespacedName)
	// keep is how long a result counts.
	keep func(fresh time.Duration, result looked[T]) time.Duration
	// patience is how long a group is waited for.
	patience time.Duration

	mu      sync.Mutex
	entries map[types.NamespacedName]*look[T]
	silent  map[string]*silence // by group
}

// silence is that of a group that has not answered everything yet.
type silence struct {
	looks  int
	enough chan struct{} // closed when it has been waited for
}

// look is one question of one object.
type look[T any] struct {
	question

	done      chan struct{}
	abandoned bool
	cancel    context.CancelFunc
	result    looked[T]
}

func newLooks[T any](limits *limiter.Limiter[string], now func() time.Time, ended func(types.NamespacedName), keep func(time.Duration, looked[T]) time.Duration) *looks[T] {
	return &looks[T]{
		limiter: limits, now: now, ended: ended, keep: keep, patience: patience,
		entries: map[types.NamespacedName]*look[T]{}, silent: map[string]*silence{},
	}
}

// ask returns the answer to a question. If it is not known, and not there when its
// group has been silent for as long as patience, ok is false, and ended is called
// when it is. A group that hangs so costs its patience once, however many ask.
func (l *looks[T]) ask(name types.NamespacedName, asked question, fresh time.Duration, do func(context.Context) (T, error)) (result looked[T], ok bool) {
	entry, enough := l.entry(name, asked, fresh, do)

	select {
	case <-entry.done:
	case <-enough:
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

// entry finds the look that answers the question, or begins one; enough is closed
// when it is not to be waited for any longer.
func (l *looks[T]) entry(name types.NamespacedName, asked question, fresh time.Duration, do func(context.Context) (T, error)) (entry *look[T], enough <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	found := l.entries[name]
	row := 0

	if found != nil && found.key != asked.key {
		found.cancel()
	}

	if found != nil && found.key == asked.key {
		select {
		case <-found.done:
			if l.now().Before(found.result.until) {
				return found, nil
			}

			row = found.result.row
		default:
			return found, l.silent[found.group].enough
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	begun := &look[T]{question: asked, done: make(chan struct{}), cancel: cancel}
	l.entries[name] = begun

	group := l.silent[asked.group]
	if group == nil {
		group = &silence{enough: make(chan struct{})}
		l.silent[asked.group] = group

		time.AfterFunc(l.patience, func() { close(group.enough) })
	}

	group.looks++

	go l.run(ctx, name, begun, row, fresh, do)

	return begun, group.enough
}

// answered notes the end of a look. Called with the lock held.
func (l *looks[T]) answered(group string) {
	if l.silent[group].looks--; l.silent[group].looks == 0 {
		delete(l.silent, group)
	}
}

func (l *looks[T]) run(ctx context.Context, name types.NamespacedName, begun *look[T], row int, fresh time.Duration, do func(context.Context) (T, error)) {
	defer begun.cancel()

	var value T

	err := context.Canceled // nobody asks any more

	if release, failed := l.limiter.Acquire(ctx, begun.group); failed == nil {
		err = sheltered(func() (failure error) {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()

			value, failure = do(ctx)

			return failure
		})

		release()
	}

	l.mu.Lock()

	result := looked[T]{value: value, err: err, at: l.now()}
	if err != nil {
		result.row = row + 1
	}

	result.until = result.at.Add(l.keep(fresh, result))
	begun.result = result

	l.answered(begun.group)
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

	if found := l.entries[name]; found != nil {
		found.cancel()
		delete(l.entries, name)
	}
}
