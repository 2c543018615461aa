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

// listBudget is the memory that lists may take at the same time, in bytes. Each user may hold half of it, so nobody can
// keep all from the others by not reading answers. Lists are admitted in the order of arrival.
type listBudget struct {
	half    int64
	timeout time.Duration
	bytes   *semaphore.Weighted
	large   *semaphore.Weighted // the one list that is larger than half

	mu    sync.Mutex
	users map[string]*holder
}

// holder is a user whose lists are served or wait.
type holder struct {
	bytes          *semaphore.Weighted
	lists, waiting int
}

// part is what a list needs of a semaphore.
type part struct {
	of    *semaphore.Weighted
	bytes int64
}

func newListBudget(size int64, timeout time.Duration) *listBudget {
	return &listBudget{
		half: max(size/2, 1), timeout: timeout, bytes: semaphore.NewWeighted(max(size, 1)), large: semaphore.NewWeighted(1),
		users: map[string]*holder{},
	}
}

// take waits for the given number of bytes. A list that is larger than half of the budget holds half, and runs alone
// among those: the other half is for smaller ones. The returned function gives the bytes back, and can be called more
// than once.
func (b *listBudget) take(ctx context.Context, user string, bytes int64) (giveBack func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()

	holds, share := b.enter(user), min(bytes, b.half)

	// The user's own share first: who waits for it is in nobody's way.
	parts := []part{{holds.bytes, share}}
	if bytes > b.half {
		parts = append(parts, part{b.large, 1})
	}

	parts = append(parts, part{b.bytes, share})

	held := 0
	giveBack = sync.OnceFunc(func() {
		for _, each := range parts[:held] {
			each.of.Release(each.bytes)
		}

		b.exit(user)
	})

	for _, each := range parts {
		if err := b.acquire(ctx, holds, each); err != nil {
			giveBack()

			return nil, err
		}

		held++
	}

	return giveBack, nil
}

func (b *listBudget) acquire(ctx context.Context, holds *holder, wanted part) error {
	if wanted.of.TryAcquire(wanted.bytes) {
		return nil
	}

	if !b.enqueue(holds) {
		return errBusy
	}
	defer b.dequeue(holds)

	if wanted.of.Acquire(ctx, wanted.bytes) != nil {
		return errBusy
	}

	return nil
}

func (b *listBudget) enter(user string) *holder {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.users[user] == nil {
		b.users[user] = &holder{bytes: semaphore.NewWeighted(b.half)}
	}

	b.users[user].lists++

	return b.users[user]
}

func (b *listBudget) exit(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.users[user].lists--; b.users[user].lists == 0 {
		delete(b.users, user)
	}
}

func (b *listBudget) enqueue(holds *holder) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if holds.waiting >= waitingPerUser {
		return false
	}

	holds.waiting++

	return true
}

func (b *listBudget) dequeue(holds *holder) {
	b.mu.Lock()
	defer b.mu.Unlock()

	holds.waiting--
}
