package bounds

import (
	"context"
	"sync"
)

// Watch is what one open watch takes of an account besides the copy: what is on its way, and the message that is being
// handled. It is safe for concurrent use. A nil Watch charges nothing.
type Watch struct {
	account *Account
	limit   int

	mu      sync.Mutex
	handled int64 // the weight of the message that is being handled
	closed  bool
}

// OpenWatch charges what of a watch may be on its way if each of its messages has at most limit bytes.
func OpenWatch(account *Account, limit int) (*Watch, error) {
	return &Watch{account: account, limit: limit}, account.Charge(0, int64(limit+StreamWindow))
}

// Limit is how long each message may be, in bytes.
func (w *Watch) Limit() int { return w.limit }

// Handle charges the message that is handled from now on, which replaces the one before; 0: none is. Call it before the
// message is decoded. After an error the session ends.
func (w *Watch) Handle(weight int64) error {
	if w == nil {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.closed {
		return context.Canceled
	}

	change := weight - w.handled
	w.handled = weight

	return w.account.Charge(0, change)
}

// Close credits everything to the account.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.closed {
		return
	}

	w.closed = true
	_ = w.account.Charge(0, -w.handled-int64(w.limit+StreamWindow)) // an account that is over holds nothing
}

// watchKey is the key of a context that has a Watch.
type watchKey struct{}

// WithWatch gives a watch to the call that opens it.
func WithWatch(ctx context.Context, watch *Watch) context.Context {
	return context.WithValue(ctx, watchKey{}, watch)
}

// WatchOf returns the watch of WithWatch, or nil.
func WatchOf(ctx context.Context) *Watch {
	watch, _ := ctx.Value(watchKey{}).(*Watch)

	return watch
}
