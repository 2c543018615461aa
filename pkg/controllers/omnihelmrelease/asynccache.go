package omnihelmrelease

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

const (
	// answerTimeout is how long a worker waits for what is usually quick; after that
	// the answer wakes the object.
	answerTimeout = 2 * time.Second
	// questionTimeout bounds one question.
	questionTimeout = 2 * time.Minute
)

// question is what an object wants to know.
type question struct {
	key   string // changes with everything that decides about the answer
	group string // who is asked, for the limit on what is asked at once
}

// answer is what a question ended with.
type answer[T any] struct {
	value    T
	err      error
	at       time.Time // when it came
	failures int       // in a row, this one included
	until    time.Time // how long it counts
}

// asyncCache asks things that may take long (a chart repository, a comparison with a
// cluster) beside the reconciler, and keeps the answers for a while: a reconcile for
// another reason asks nobody. Only so many are asked at once, and what nobody wants to
// know any more is given up. It is safe for concurrent use.
type asyncCache[T any] struct {
	limiter *limiter.Limiter[string] // by group
	now     func() time.Time
	// ended is called when an answer has come that nobody waits for any more.
	ended func(types.NamespacedName)
	// keep is how long an answer counts.
	keep func(fresh time.Duration, result answer[T]) time.Duration
	// timeout is how long a group is waited for.
	timeout time.Duration

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry[T]
	pending map[string]*pending // by group
}

// entry is the last question of one object.
type entry[T any] struct {
	question

	done      chan struct{} // closed when there is an answer
	abandoned bool
	cancel    context.CancelFunc
	answer    answer[T]
}

// pending are the questions of a group that have no answer yet. They are waited for
// together, from the first: a group that hangs costs the workers one timeout.
type pending struct {
	questions int
	timedOut  chan struct{} // closed when it is over
}

func newAsyncCache[T any](limits *limiter.Limiter[string], now func() time.Time, ended func(types.NamespacedName), keep func(time.Duration, answer[T]) time.Duration) *asyncCache[T] {
	return &asyncCache[T]{
		limiter: limits, now: now, ended: ended, keep: keep, timeout: answerTimeout,
		entries: map[types.NamespacedName]*entry[T]{}, pending: map[string]*pending{},
	}
}

// ask returns the answer to a question. If it is not known, and does not come within
// the timeout of its group, ok is false, and ended is called when it is there.
func (c *asyncCache[T]) ask(name types.NamespacedName, asked question, fresh time.Duration, do func(context.Context) (T, error)) (result answer[T], ok bool) {
	found, timedOut := c.find(name, asked, fresh, do)

	select {
	case <-found.done:
	case <-timedOut:
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	select {
	case <-found.done:
		return found.answer, true
	default:
		found.abandoned = true

		return answer[T]{}, false
	}
}

// find returns the entry that answers the question, or asks it. timedOut is closed when
// the answer is not to be waited for any longer.
func (c *asyncCache[T]) find(name types.NamespacedName, asked question, fresh time.Duration, do func(context.Context) (T, error)) (found *entry[T], timedOut <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	failures := 0

	if found = c.entries[name]; found != nil && found.key != asked.key {
		found.cancel()
	}

	if found != nil && found.key == asked.key {
		select {
		case <-found.done:
			if c.now().Before(found.answer.until) {
				return found, nil
			}

			failures = found.answer.failures
		default:
			return found, c.pending[found.group].timedOut
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	found = &entry[T]{question: asked, done: make(chan struct{}), cancel: cancel}
	c.entries[name] = found

	go c.run(ctx, name, found, failures, fresh, do)

	return found, c.begin(asked.group)
}

// begin counts a question of a group. The caller has the lock.
func (c *asyncCache[T]) begin(group string) (timedOut <-chan struct{}) {
	waiting := c.pending[group]
	if waiting == nil {
		waiting = &pending{timedOut: make(chan struct{})}
		c.pending[group] = waiting

		time.AfterFunc(c.timeout, func() { close(waiting.timedOut) })
	}

	waiting.questions++

	return waiting.timedOut
}

// run asks, when there is a slot.
func (c *asyncCache[T]) run(ctx context.Context, name types.NamespacedName, asked *entry[T], failures int, fresh time.Duration, do func(context.Context) (T, error)) {
	defer asked.cancel()

	var value T

	err := context.Canceled // nobody asks any more

	if release, failed := c.limiter.Acquire(ctx, asked.group, 1); failed == nil {
		err = sheltered(func() (failure error) {
			ctx, cancel := context.WithTimeout(ctx, questionTimeout)
			defer cancel()

			value, failure = do(ctx)

			return failure
		})

		release()
	}

	result := answer[T]{value: value, err: err, at: c.now()}
	if err != nil {
		result.failures = failures + 1
	}

	result.until = result.at.Add(c.keep(fresh, result))

	if abandoned := c.settle(asked, result); abandoned {
		c.ended(name)
	}
}

// settle notes an answer, and reports whether somebody gave up waiting for it.
func (c *asyncCache[T]) settle(asked *entry[T], result answer[T]) (abandoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	asked.answer = result
	close(asked.done)

	if c.pending[asked.group].questions--; c.pending[asked.group].questions == 0 {
		delete(c.pending, asked.group)
	}

	return asked.abandoned
}

// forget drops what is known of an object that is gone.
func (c *asyncCache[T]) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if found := c.entries[name]; found != nil {
		found.cancel()
		delete(c.entries, name)
	}
}
