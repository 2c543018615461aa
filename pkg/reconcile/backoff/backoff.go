// Package backoff is how long to pause before something that failed is tried again:
// k8s.io/apimachinery's backoff with the one jitter of this repository.
package backoff

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Jitter takes up to half of a pause off at random, so that what failed together does
// not come back together.
func Jitter(pause time.Duration) time.Duration { return wait.Jitter(pause/2, 1) }

// Backoff gives the pauses of a row of failures: each is twice the one before.
type Backoff struct{ steps wait.Backoff }

// New makes a Backoff from its first pause and its longest.
func New(first, longest time.Duration) *Backoff {
	return &Backoff{wait.Backoff{Duration: min(first, longest), Factor: 2, Steps: math.MaxInt32, Cap: longest}}
}

// Longest is how long the next pause is without its jitter.
func (b *Backoff) Longest() time.Duration { return b.steps.Duration }

// Next is the next pause, with jitter.
func (b *Backoff) Next() time.Duration { return Jitter(b.steps.Step()) }

// After is the pause after so many failures in a row, without jitter.
func After(failures int, first, longest time.Duration) time.Duration {
	b := New(first, longest)

	for b.steps.Steps > 0 && failures > 1 {
		b.steps.Step()
		failures--
	}

	return b.steps.Duration
}
