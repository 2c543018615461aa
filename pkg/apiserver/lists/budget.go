package lists

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// Timeout is how long a list waits for its turn before the server asks the client to try again later. A watch
	// that begins with a list gives its memory back after this time.
	Timeout = 10 * time.Second
	// waitingPerUser is how many lists of one user may wait at the same time. Further ones are refused at once, so
	// that lists of other users find a place in the queue.
	waitingPerUser = 8
)

// errBusy says that a list did not get its turn in time.
var errBusy = errors.New("as much is being listed as fits into the memory (--max-list-bytes-in-flight)")

// listBudget is the memory that lists may take at the same time, in bytes. Lists are admitted in the order of
// arrival.
type listBudget struct {
	size    int64
	timeout time.Duration
	bytes   *semaphore.Weighted

	mu      sync.Mutex
	waiting map[string]int
}

func newListBudget(size int64) *listBudget {
	return &listBudget{size: size, timeout: Timeout, bytes: semaphore.NewWeighted(size), waiting: map[string]int{}}
}

// take waits for the given number of bytes; a list that is larger than the whole budget runs alone. The returned
// function gives the bytes back, and can be called more than once.
func (b *listBudget) take(ctx context.Context, user string, bytes int64) (giveBack func(), err error) {
	bytes = min(bytes, b.size)

	if !b.bytes.TryAcquire(bytes) {
		if err := b.wait(ctx, user, bytes); err != nil {
			return nil, err
		}
	}

	return sync.OnceFunc(func() { b.bytes.Release(bytes) }), nil
}

func (b *listBudget) wait(ctx context.Context, user string, bytes int64) error {
	if !b.enqueue(user) {
		return errBusy
	}
	defer b.dequeue(user)

	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()

	if b.bytes.Acquire(ctx, bytes) != nil {
		return errBusy
	}

	return nil
}

func (b *listBudget) enqueue(user string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.waiting[user] >= waitingPerUser {
		return false
	}

	b.waiting[user]++

	return true
}

func (b *listBudget) dequeue(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.waiting[user]--; b.waiting[user] == 0 {
		delete(b.waiting, user)
	}
}
