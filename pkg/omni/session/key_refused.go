package session

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// keyRefusalInterval is the shortest time between two reports that Omni refuses the key: clients that keep calling must
// not make the connection check without end.
const keyRefusalInterval = 30 * time.Second

// keyRefusals detects that Omni no longer accepts the key. The key was valid when the connection was opened, so it was
// revoked since, or Omni lost it.
type keyRefusals struct {
	tell func()
	now  func() time.Time

	mu    sync.Mutex
	total uint64
	told  time.Time
}

func newKeyRefusals(tell func()) *keyRefusals {
	if tell == nil {
		tell = func() {}
	}

	return &keyRefusals{tell: tell, now: time.Now}
}

// checking marks a call of Check: its caller receives the error anyway.
type checking struct{}

// note records the outcome of a call.
func (r *keyRefusals) note(ctx context.Context, err error) {
	if err == nil || status.Code(err) != codes.Unauthenticated || ctx.Value(checking{}) != nil {
		return
	}

	r.mu.Lock()
	r.total++
	now := r.now()
	news := r.told.IsZero() || now.Sub(r.told) >= keyRefusalInterval

	if news {
		r.told = now
	}

	r.mu.Unlock()

	if news {
		r.tell()
	}
}

func (r *keyRefusals) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.total
}
