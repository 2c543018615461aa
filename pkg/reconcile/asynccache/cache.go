// Package asynccache makes calls that may take long (to a chart repository, a workload cluster, or Omni) outside of a
// controller's runs, and keeps the answers for a while, so that a run for another reason makes no call.
//
// golang.org/x/sync/singleflight is not enough: here an answer outlives its call, a call that no object needs any more
// is cancelled, and a run waits only once for a server that does not answer.
package asynccache

import (
	"cmp"
	"context"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// Options configure a Cache. All are required except Limiter.
type Options[N, Q comparable, T any] struct {
	// Limiter bounds the calls at the same time, by slot.
	Limiter *limiter.Limiter[string]
	// AnswerTimeout is how long a run waits for calls that are usually quick; after that, the answer triggers the
	// object.
	AnswerTimeout time.Duration
	// QuestionTimeout bounds one call, without its wait for a slot.
	QuestionTimeout time.Duration
	// Now replaces time.Now in tests.
	Now func() time.Time
	// Keep returns how long an answer is valid.
	Keep func(question Question[Q], answer Answer[T]) time.Duration
	// Wake is called when an answer has arrived for which no run waits any more. It must not block.
	Wake func(N)
}

// Question is one call for an object.
type Question[Q comparable] struct {
	// Key changes with everything that the answer depends on.
	Key Q
	// Group is the server that is called. Runs wait for all calls of a group that does not answer together.
	Group string
	// Slot is the key for the Limiter; empty means the group.
	Slot string
	// Fresh is a parameter for Keep.
	Fresh time.Duration
	// After is since when what others know has to have been asked, if the call can be answered by that; zero: whenever. The first one
	// counts for as long as calls fail.
	After time.Time
}

// Answer is the result of a call.
type Answer[T any] struct {
	Value T
	Err   error
	// At is when the answer arrived, Until how long it is valid.
	At, Until time.Time
	// Failures is the number of errors in a row, including this one.
	Failures int
}

// Cache keeps the last call of each object with its answer. N identifies objects. It is safe for concurrent use.
type Cache[N, Q comparable, T any] struct {
	// Options must not be changed while a call is running.
	Options Options[N, Q, T]

	mu      sync.Mutex
	entries map[N]*entry[Q, T]
	pending map[string]*pending // by group
}

// entry is the last call of one object.
type entry[Q comparable, T any] struct {
	Question[Q]

	done      chan struct{} // closed when there is an answer
	abandoned bool
	cancel    context.CancelFunc
	answer    Answer[T]
}

// pending are the calls of a group without an answer. Runs wait for all of them together, from the first call on: a
// group that does not answer costs the workers one timeout.
type pending struct {
	questions int
	timedOut  chan struct{} // closed when it is over
}

// New makes an empty Cache.
func New[N, Q comparable, T any](options Options[N, Q, T]) *Cache[N, Q, T] {
	return &Cache[N, Q, T]{Options: options, entries: map[N]*entry[Q, T]{}, pending: map[string]*pending{}}
}

// Ask returns the answer to a question, and makes the call if necessary, with the question as it is now. If the answer arrives
// neither within the timeout of the group nor before ctx ends, ok is false, and Wake is called when it arrives.
func (c *Cache[N, Q, T]) Ask(ctx context.Context, name N, asked Question[Q], do func(context.Context, Question[Q]) (T, error)) (answer Answer[T], ok bool) {
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

// Forget removes what is kept about an object, and cancels its call.
func (c *Cache[N, Q, T]) Forget(name N) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if found := c.entries[name]; found != nil {
		found.cancel()
		delete(c.entries, name)
	}
}

// Pending reports whether the last call of an object has no answer yet.
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

// find returns the entry for the question, and starts the call if there is none. timedOut is closed when a run no
// longer waits for the answer.
func (c *Cache[N, Q, T]) find(name N, asked Question[Q], do func(context.Context, Question[Q]) (T, error)) (found *entry[Q, T], timedOut <-chan struct{}) {
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

			if failures = found.answer.Failures; failures > 0 && !found.After.IsZero() {
				asked.After = found.After
			}
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

// begin counts a call of a group. The caller holds the lock.
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

// run makes the call when there is a slot.
func (c *Cache[N, Q, T]) run(ctx context.Context, name N, asked *entry[Q, T], failures int, do func(context.Context, Question[Q]) (T, error)) {
	defer asked.cancel()

	var answer Answer[T]

	answer.Value, answer.Err = c.ask(ctx, asked.Question, do)
	answer.At = c.Options.Now()

	if answer.Err != nil {
		answer.Failures = failures + 1
	}

	answer.Until = answer.At.Add(c.Options.Keep(asked.Question, answer))

	if abandoned := c.keepAnswer(asked, answer); abandoned {
		c.Options.Wake(name)
	}
}

func (c *Cache[N, Q, T]) ask(ctx context.Context, asked Question[Q], do func(context.Context, Question[Q]) (T, error)) (value T, err error) {
	if c.Options.Limiter != nil {
		release, err := c.Options.Limiter.Acquire(ctx, cmp.Or(asked.Slot, asked.Group), 1)
		if err != nil {
			return value, err // nobody asks any more
		}
		defer release()
	}

	ctx, cancel := context.WithTimeout(ctx, c.Options.QuestionTimeout)
	defer cancel()

	return do(ctx, asked)
}

// keepAnswer stores an answer, and reports whether a run gave up waiting for it.
func (c *Cache[N, Q, T]) keepAnswer(asked *entry[Q, T], answer Answer[T]) (abandoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	asked.answer = answer
	close(asked.done)

	if c.pending[asked.Group].questions--; c.pending[asked.Group].questions == 0 {
		delete(c.pending, asked.Group)
	}

	return asked.abandoned
}
