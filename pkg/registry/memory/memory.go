// Package memory has the budgets of memory that requests wait for, and what was measured of the memory that a write takes.
package memory

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// Copies is how many times the text of an object, or of the body of a request, is held.
	Copies = 6
	// PerValue is what a value takes, in bytes: its entries in the object before, in the object after or as it is stored, and in the
	// structures of field ownership. Measured: 50,000 empty objects in a free-form block take 74 MiB.
	PerValue = 1400
	// RestPerByteAndLevel is what a byte takes at each level of a JSON text that a patch is applied to, in bytes: the library that
	// applies merge patches and JSON patches keeps the rest of the text at each level that it reads. Measured for 900 KiB:
	// 80 MiB with 64 levels, 276 MiB with 260.
	RestPerByteAndLevel = 1.25
)

// ErrBusy says that a request did not get its part of a budget in time, or may not wait for it.
var ErrBusy = errors.New("the memory for requests is used up")

// Budget is memory that requests may take at the same time, in bytes. Each user may hold half of it, so nobody can keep all
// from the others. Requests are admitted in the order of arrival.
type Budget struct {
	half, most int64
	waiting    int
	bytes      *semaphore.Weighted
	large      *semaphore.Weighted // the one request that is larger than half

	mu    sync.Mutex
	users map[string]*holder
}

// holder is a user whose requests are served or wait.
type holder struct {
	bytes             *semaphore.Weighted
	requests, waiting int
}

// need is what a request needs of a semaphore.
type need struct {
	of    *semaphore.Weighted
	bytes int64
}

// NewBudget makes a budget. A request that is larger than half of it runs alone among those, and is charged most bytes at the
// most: half, if others shall have the other half meanwhile, or all. So many requests of one user may wait; further ones are
// refused at once, so that those of other users find a place in the queue.
func NewBudget(size, most int64, waiting int) *Budget {
	return &Budget{
		half: max(size/2, 1), most: max(most, 1), waiting: waiting,
		bytes: semaphore.NewWeighted(max(size, 1)), large: semaphore.NewWeighted(1), users: map[string]*holder{},
	}
}

// Half is the most that one user may hold by requests that are not larger.
func (b *Budget) Half() int64 { return b.half }

// Take waits for the given number of bytes for the request's user, until the context ends. The returned function gives the bytes
// back, and can be called more than once. The error is ErrBusy.
func (b *Budget) Take(ctx context.Context, bytes int64) (giveBack func(), err error) {
	user := userOf(ctx)
	holds := b.enter(user)

	// The user's own share first: who waits for it is in nobody's way.
	needs := []need{{holds.bytes, min(bytes, b.half)}}
	if bytes > b.half {
		needs = append(needs, need{b.large, 1})
	}

	needs = append(needs, need{b.bytes, min(bytes, b.most)})

	held := 0
	giveBack = sync.OnceFunc(func() {
		for _, each := range needs[:held] {
			each.of.Release(each.bytes)
		}

		b.exit(user)
	})

	for _, each := range needs {
		if err := b.acquire(ctx, holds, each); err != nil {
			giveBack()

			return nil, err
		}

		held++
	}

	return giveBack, nil
}

func (b *Budget) acquire(ctx context.Context, holds *holder, wanted need) error {
	if wanted.of.TryAcquire(wanted.bytes) {
		return nil
	}

	if !b.enqueue(holds) {
		return ErrBusy
	}
	defer b.dequeue(holds)

	if wanted.of.Acquire(ctx, wanted.bytes) != nil {
		return ErrBusy
	}

	return nil
}

func (b *Budget) enter(user string) *holder {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.users[user] == nil {
		b.users[user] = &holder{bytes: semaphore.NewWeighted(b.half)}
	}

	b.users[user].requests++

	return b.users[user]
}

func (b *Budget) exit(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.users[user].requests--; b.users[user].requests == 0 {
		delete(b.users, user)
	}
}

func (b *Budget) enqueue(holds *holder) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if holds.waiting >= b.waiting {
		return false
	}

	holds.waiting++

	return true
}

func (b *Budget) dequeue(holds *holder) {
	b.mu.Lock()
	defer b.mu.Unlock()

	holds.waiting--
}

func userOf(ctx context.Context) string {
	if user, found := genericapirequest.UserFrom(ctx); found {
		return user.GetName()
	}

	return ""
}

// Part is what a request takes of a budget, given back when the last of those who work for the request is done. The library
// answers a request that ran out of time, or whose client has gone, while the work for it goes on.
type Part struct {
	giveBack func()

	mu      sync.Mutex
	holders int
}

// partKey is the context key of a request's part.
type partKey struct{}

// NewPart makes a part that its maker holds. giveBack is called once, when nobody holds it any more.
func NewPart(giveBack func()) *Part {
	return &Part{giveBack: giveBack, holders: 1}
}

// Release ends the hold of the part's maker, or of one who retained it. Each holder calls it once.
func (p *Part) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.holders--; p.holders == 0 {
		p.giveBack()
	}
}

// retain adds a holder. It reports false if nobody holds the part any more.
func (p *Part) retain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.holders == 0 {
		return false
	}

	p.holders++

	return true
}

// WithPart stores a request's part in the request's context.
func WithPart(ctx context.Context, part *Part) context.Context {
	return context.WithValue(ctx, partKey{}, part)
}

// Retain holds the part of a request until the returned function is called. It fails if the part was given back: the
// request has ended, and work for it would take memory that nobody counts. A request without a part has nothing to hold.
func Retain(ctx context.Context) (release func(), err error) {
	part, found := ctx.Value(partKey{}).(*Part)
	if !found {
		return func() {}, nil
	}

	if !part.retain() {
		return nil, apierrors.NewTimeoutError("the request ended before its work began", 0)
	}

	return part.Release, nil
}
