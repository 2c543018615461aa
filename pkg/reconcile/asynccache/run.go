package asynccache

import (
	"cmp"
	"context"
)

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
