package answer

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// processBytes is what the large answers that the process reads at the same time may
// have together, in bytes.
const processBytes = 64 << 20

// Process is the budget of the process, for every kind of server: what large answers are
// being read takes its memory.
//
//nolint:gochecknoglobals // the memory is the process's, too
var Process = NewBudget(processBytes)

// Budget bounds the large answers that are being read at the same time. It is safe for
// concurrent use.
type Budget struct {
	bytes int64
	free  *semaphore.Weighted
}

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{bytes: bytes, free: semaphore.NewWeighted(bytes)}
}

// Enter waits until so many bytes may be read, and returns what ends that; it may be
// called once. An answer larger than the budget has it for itself. The error is that of ctx.
func (b *Budget) Enter(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, b.bytes)

	if err := b.free.Acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("other large answers are being read, this one waited in vain: %w", err)
	}

	return func() { b.free.Release(bytes) }, nil
}
