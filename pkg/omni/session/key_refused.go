package session

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// keyRefusalInterval is the shortest time between two notices that Omni refuses the key:
// what goes on to call must not make the connection check without end.
const keyRefusalInterval = 30 * time.Second

// keyRefusals notices that Omni does not accept the key any more. It was good when the
// connection was opened, so it was revoked since, or Omni forgot it.
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

// checking marks a call of Check: its caller learns the outcome anyway.
type checking struct{}

// note takes the outcome of a call.
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
