package limiter

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Jitter subtracts a random part of up to half from a pause, so that operations that failed together are not tried
// again together.
func Jitter(pause time.Duration) time.Duration { return wait.Jitter(pause/2, 1) }

// Backoff has the pauses of failures in a row: each is twice the one before. The intervals of the loop have a jitter of their
// own, a tenth.
type Backoff struct{ steps wait.Backoff }

// NewBackoff returns a Backoff with its first and its longest pause.
func NewBackoff(first, longest time.Duration) *Backoff {
	return &Backoff{wait.Backoff{Duration: min(first, longest), Factor: 2, Steps: math.MaxInt32, Cap: longest}}
}

// Longest returns the next pause without jitter.
func (b *Backoff) Longest() time.Duration { return b.steps.Duration }

// Next returns the next pause, with jitter.
func (b *Backoff) Next() time.Duration { return Jitter(b.steps.Step()) }

// BackoffAfter returns the pause after this many failures in a row, without jitter.
func BackoffAfter(failures int, first, longest time.Duration) time.Duration {
	b := NewBackoff(first, longest)

	for b.steps.Steps > 0 && failures > 1 {
		b.steps.Step()
		failures--
	}

	return b.steps.Duration
}
