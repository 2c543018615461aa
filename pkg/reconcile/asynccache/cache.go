package asynccache

import (
	"context"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

// Options are how a Cache asks. All are required but Limiter.
type Options[N, Q comparable, T any] struct {
	// Limiter bounds how much is asked at once, by group.
	Limiter *limiter.Limiter[string]
	// AnswerTimeout is how long a run waits for what is usually quick; after that the
	// answer wakes the object.
	AnswerTimeout time.Duration
	// QuestionTimeout bounds one question, without its wait for a slot.
	QuestionTimeout time.Duration
	// Now is time.Now, but in tests.
	Now func() time.Time
	// Keep is how long an answer counts.
	Keep func(question Question[Q], answer Answer[T]) time.Duration
	// Wake is called when an answer has come that nobody waits for any more. It must not
	// block.
	Wake func(N)
}

// Question is what an object wants to know.
type Question[Q comparable] struct {
	// Key changes with everything that decides about the answer.
	Key Q
	// Group is who is asked. Those that hang are waited for together.
	Group string
	// Fresh is for Keep.
	Fresh time.Duration
}

// Answer is what a question ended with.
type Answer[T any] struct {
	Value T
	Err   error
	// At is when it came, Until how long it counts.
	At, Until time.Time
	// Failures is how many answers in a row were errors, this one included.
	Failures int
}

// Cache keeps the last question of each object, and the answer. N names objects. It is
// safe for concurrent use.
type Cache[N, Q comparable, T any] struct {
	// Options must not be changed while something is asked.
	Options Options[N, Q, T]

	mu      sync.Mutex
	entries map[N]*entry[Q, T]
	pending map[string]*pending // by group
}

// entry is the last question of one object.
type entry[Q comparable, T any] struct {
	Question[Q]

	done      chan struct{} // closed when there is an answer
	abandoned bool
	cancel    context.CancelFunc
	answer    Answer[T]
}

// pending are the questions of a group that have no answer yet. They are waited for
// together, from the first: a group that hangs costs the workers one timeout.
type pending struct {
	questions int
	timedOut  chan struct{} // closed when it is over
}

// New makes an empty Cache.
func New[N, Q comparable, T any](options Options[N, Q, T]) *Cache[N, Q, T] {
	return &Cache[N, Q, T]{Options: options, entries: map[N]*entry[Q, T]{}, pending: map[string]*pending{}}
}

// Ask returns the answer to a question. If it is not known, and comes neither within the
// timeout of its group nor before ctx ends, ok is false, and Wake is called when it is
// there.
func (c *Cache[N, Q, T]) Ask(ctx context.Context, name N, asked Question[Q], do func(context.Context) (T, error)) (answer Answer[T], ok bool) {
	found, timedOut := c.find(name, asked, do)

	select {
	case <-found.done:
	case <-timedOut:
	case <-ctx.Done():
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	select {
	case <-found.done:
		return found.answer, true
	default:
		found.abandoned = true

		return Answer[T]{}, false
	}
}

// Forget drops what is known of an object. What it asks is given up.
func (c *Cache[N, Q, T]) Forget(name N) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if found := c.entries[name]; found != nil {
		found.cancel()
		delete(c.entries, name)
	}
}

// Pending reports whether the last question of an object has no answer yet.
func (c *Cache[N, Q, T]) Pending(name N) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.entries[name] == nil {
		return false
	}

	select {
	case <-c.entries[name].done:
		return false
	default:
		return true
	}
}

// find returns the entry that answers the question, or asks it. timedOut is closed when
// the answer is not to be waited for any longer.
func (c *Cache[N, Q, T]) find(name N, asked Question[Q], do func(context.Context) (T, error)) (found *entry[Q, T], timedOut <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	failures := 0

	if found = c.entries[name]; found != nil && found.Key != asked.Key {
		found.cancel()
	}

	if found != nil && found.Key == asked.Key {
		select {
		case <-found.done:
			if c.Options.Now().Before(found.answer.Until) {
				return found, nil
			}

			failures = found.answer.Failures
		default:
			return found, c.pending[found.Group].timedOut
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	found = &entry[Q, T]{Question: asked, done: make(chan struct{}), cancel: cancel}
	c.entries[name] = found

	go c.run(ctx, name, found, failures, do)

	return found, c.begin(asked.Group)
}

// begin counts a question of a group. The caller has the lock.
func (c *Cache[N, Q, T]) begin(group string) (timedOut <-chan struct{}) {
	waiting := c.pending[group]
	if waiting == nil {
		waiting = &pending{timedOut: make(chan struct{})}
		c.pending[group] = waiting

		time.AfterFunc(c.Options.AnswerTimeout, func() { close(waiting.timedOut) })
	}

	waiting.questions++

	return waiting.timedOut
}
