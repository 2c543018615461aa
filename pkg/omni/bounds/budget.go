// Package bounds limits how much an Omni may send, and how much of it we keep: limits with their defaults, the weight
// of a message before it is decoded, and the budget that all sessions of the process share.
//
// A weight is an estimate of the memory that a message takes once it is decoded, including its compressed content. All
// data from Omni is weighed first: package session weighs the answers of calls, package mirror the events of watches.
package bounds

import (
	"context"
	"fmt"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Budget bounds the memory that all sessions of a process use together. Weights are estimates of that memory, see
// Weigh. It is safe for concurrent use.
type Budget struct {
	limits Limits

	mu       sync.Mutex
	used     int64
	accounts map[*Account]struct{}
}

// Account is one session's part of a budget. A nil account has no bounds.
type Account struct {
	budget *Budget
	owner  string
	over   func(error)

	// guarded by budget.mu
	bytes     int64
	resources int
	retired   bool
	closed    bool
}

// NewBudget returns a budget for all sessions of the process.
func NewBudget(limits Limits) *Budget {
	return &Budget{limits: limits.WithDefaults(), accounts: map[*Account]struct{}{}}
}

// Open opens an account. The account calls over at most once, in a goroutine of its own, when the session has to end.
// If the shared budget is used up, the sessions of one owner count together.
func (b *Budget) Open(owner string, over func(error)) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()

	opened := &Account{budget: b, owner: owner, over: over}
	b.accounts[opened] = struct{}{}

	return opened
}

// Retire marks the account of a session that was replaced or forgotten: it goes first if the shared budget is used up.
func (a *Account) Retire() {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	a.retired = true
}

// Charge adds what the session is about to keep, or subtracts what it no longer keeps. After an error the session ends,
// and its data is dropped.
func (a *Account) Charge(resources int, bytes int64) error {
	if a == nil {
		return nil
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	if a.closed {
		return omni.ErrClosed
	}

	a.resources, a.bytes, a.budget.used = a.resources+resources, a.bytes+bytes, a.budget.used+bytes

	limits := a.budget.limits

	switch {
	case a.resources > limits.Resources:
		return a.fail(fmt.Sprintf("Omni sent %d resources of the kinds that are copied; the bound is %d (--omni-max-resources)",
			a.resources, limits.Resources))
	case a.bytes > limits.Memory:
		return a.fail(fmt.Sprintf("the copy of this Omni's %d resources takes %s of memory; the bound is %s (--omni-max-memory)",
			a.resources, Mebibytes(a.bytes), Mebibytes(limits.Memory)))
	case a.budget.used > limits.TotalMemory:
		return a.budget.shed(a)
	}

	return nil
}

// shed ends the largest retired session: only a run that is not over needs it, and is repeated with its successor. If there is none, shed
// ends the largest session of the owner that uses the most memory, so that no owner can crowd out others with many small
// sessions. It returns an error if that session is asking. The caller holds the lock.
func (b *Budget) shed(asking *Account) error {
	sums := map[string]int64{}
	for each := range b.accounts {
		sums[each.owner] += each.bytes
	}

	victim := asking
	for each := range b.accounts {
		if each.goesBefore(victim, sums) {
			victim = each
		}
	}

	why := fmt.Sprintf("those of this namespace take the most: %s", Mebibytes(sums[victim.owner]))
	if victim.retired {
		why = "this one is needed no longer than for a run"
	}

	err := victim.fail(fmt.Sprintf("the copies of all Omnis together take more than %s of memory, and %s (--omni-max-total-memory)",
		Mebibytes(b.limits.TotalMemory), why))

	if victim == asking {
		return err
	}

	return nil
}

// goesBefore reports whether shed ends this session rather than another one. sums has the memory of each owner.
func (a *Account) goesBefore(other *Account, sums map[string]int64) bool {
	switch {
	case a.retired != other.retired:
		return a.retired
	case a.retired || a.owner == other.owner:
		return a.bytes > other.bytes
	default:
		return sums[a.owner] > sums[other.owner]
	}
}

// TooMuch ends the session for a reason other than its sum.
func (a *Account) TooMuch(err error) {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	if !a.closed {
		_ = a.fail(err.Error())
	}
}

// fail closes the account. The caller holds the lock.
func (a *Account) fail(message string) error {
	err := &omni.TooMuchDataError{Message: message}

	a.end()

	go a.over(err)

	return err
}

// Close releases the account's memory. It may be called more than once.
func (a *Account) Close() {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	a.end()
}

func (a *Account) end() {
	if a.closed {
		return
	}

	a.closed = true
	a.budget.used -= a.bytes
	delete(a.budget.accounts, a)
}

// Held returns what the account holds now.
func (a *Account) Held() (resources int, bytes int64) {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	return a.resources, a.bytes
}

// Mebibytes formats a size for people.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// The default rate of calls to one Omni. A new cluster takes about ten calls, a changed one about five, an idle one
// none: so this is a sustained rate of ten new clusters a second, and twenty at once. An Omni serves far more calls;
// the rest is for its other clients and its machines.
const (
	DefaultQPS   = 100
	DefaultBurst = 200
)

// MaxThrottle is the longest time that one call waits for the rate limiter. Then it fails; the reconcile frees its
// worker and is retried with backoff.
const MaxThrottle = 5 * time.Second

// The default bounds of what we keep of Omnis; docs/concepts/limits.md has the sizes of a fleet.
const (
	DefaultResources   = 250_000
	DefaultMemory      = 96 << 20
	DefaultTotalMemory = 192 << 20
)

const (
	// FirstEvent is how long one message of a watch may be at first, in bytes. Most resources have 1 to 5 KiB, and an
	// update has the resource twice. A watch that needs more is opened again with twice the limit.
	FirstEvent = 64 << 10
	// MaxEvent is the largest such limit: two of the largest resources.
	MaxEvent = 2 * MaxAnswer
)

// Limits bounds how many calls one connection may make to its Omni, and how much of an Omni we keep.
type Limits struct {
	// QPS is the sustained rate of calls per second. 0: DefaultQPS.
	QPS float64
	// Burst is the number of calls that may go out at once. 0: DefaultBurst.
	Burst int
	// Resources is how many resources of one Omni we keep. 0: DefaultResources.
	Resources int
	// Memory is the memory that the copy of one Omni may take, in bytes, estimated. 0: DefaultMemory.
	Memory int64
	// TotalMemory is the memory that all copies may take together, in bytes. No other single namespace can end the
	// connections of a namespace whose copies take no more than half of it. 0: DefaultTotalMemory.
	TotalMemory int64
}

// WithDefaults replaces zero fields with their defaults.
func (l Limits) WithDefaults() Limits {
	if l.QPS <= 0 {
		l.QPS = DefaultQPS
	}

	if l.Burst <= 0 {
		l.Burst = DefaultBurst
	}

	if l.Resources <= 0 {
		l.Resources = DefaultResources
	}

	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}

	if l.TotalMemory <= 0 {
		l.TotalMemory = DefaultTotalMemory
	}

	return l
}

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

// Bounds of one message, in bytes, after decompression.
const (
	// MaxAnswer is the size of one message of the resource API, in bytes: one resource. Omni's own storage accepts less.
	MaxAnswer = 4 << 20
	// StreamWindow is how much of a stream may arrive before the reader consumes it, in bytes.
	StreamWindow = 64 << 10
)

// TooLong is the error for one message that is longer than its call accepts.
type TooLong struct{ Limit int }

// Error implements error.
func (e *TooLong) Error() string {
	return fmt.Sprintf("one answer of Omni is longer than %d KiB", e.Limit>>10)
}

// Is makes errors.Is(err, ErrTooMuchData) true.
func (e *TooLong) Is(target error) bool { return target == omni.ErrTooMuchData }
