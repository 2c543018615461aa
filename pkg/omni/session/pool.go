package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
)

// Identity identifies an OmniConnection and its Secret.
type Identity struct {
	// UID is the OmniConnection's UID.
	UID string
	// Owner is the OmniConnection's namespace: see Limits.TotalMemory.
	Owner string
	// SecretUID is the UID of the key's Secret. A new key in the same Secret also makes a new session: see fingerprintOf.
	SecretUID string
}

// PoolOptions configures a Pool. Callbacks may be nil and must not block.
type PoolOptions struct {
	// ClusterChanged is called for a change in Omni, with the connection's UID and the name of the cluster there.
	ClusterChanged func(uid, cluster string)
	// HealthChanged is called when a connection's Health has changed.
	HealthChanged func(uid string)
	// KeyRefused is called when Omni did not accept a connection's key in a call, except those of Check, at most once in
	// keyRefusalInterval.
	KeyRefused func(uid string)
	// Observer is called for every call of every connection.
	Observer func(uid, method, code string, duration time.Duration)
	// Throttled is called for every call that waited for the rate limiter.
	Throttled func(uid string, waited time.Duration)
	// Limits bounds how many calls each connection may make to its Omni, and how much of it we keep.
	Limits bounds.Limits
	// Runs is how many reconciles may use one connection at the same time; see Lease.Enter. 0: no bound.
	Runs int
	// Guard decides which addresses may be dialled; see Config.Guard.
	Guard *dialguard.Guard
	// Mirror configures the mirrors; its callbacks are ignored.
	Mirror mirror.Options
	// TooMuchDataPause replaces the constant of the same name.
	TooMuchDataPause time.Duration
	// Open replaces dialling, for tests.
	Open func(ctx context.Context, config Config, mirror mirror.Options) (*Session, error)
}

// TooMuchDataPause is how long a connection whose Omni sent too much stays closed. Reading it again costs as much as
// before, and the cause is rarely repaired sooner.
const TooMuchDataPause = 15 * time.Minute

// Pool keeps one session for each OmniConnection. It is safe for concurrent use, and no connection ever waits for
// another: it dials outside its lock, once for all callers with the same identity and config.
type Pool struct {
	ctx     context.Context //nolint:containedctx // the life of the mirrors
	options PoolOptions
	budget  *bounds.Budget
	limiter *limiter.Limiter[string] // by UID: successive sessions of a connection share their slots

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry // by UID
}

// NewPool returns an empty pool. Sessions live until ctx ends or Close is called.
func NewPool(ctx context.Context, options PoolOptions) *Pool {
	if options.ClusterChanged == nil {
		options.ClusterChanged = func(string, string) {}
	}

	if options.HealthChanged == nil {
		options.HealthChanged = func(string) {}
	}

	if options.KeyRefused == nil {
		options.KeyRefused = func(string) {}
	}

	if options.TooMuchDataPause <= 0 {
		options.TooMuchDataPause = TooMuchDataPause
	}

	if options.Open == nil {
		options.Open = func(ctx context.Context, config Config, mirror mirror.Options) (*Session, error) {
			return openSession(ctx, ctx, config, mirror)
		}
	}

	p := &Pool{ctx: ctx, options: options, budget: bounds.NewBudget(options.Limits), entries: map[string]*entry{}}
	p.limiter = limiter.New(limiter.Limits[string]{PerKey: int64(options.Runs), Slow: p.slow})

	return p
}

// Acquire returns the session for a connection, and opens it if there is none or if the Secret, the key, the endpoint
// or the CA changed. It waits for dialling (at most CheckTimeout) or for ctx. The replaced session is closed after its
// last lease is released. An attempt continues if its callers give up: HealthChanged is called at its end, and the next
// caller gets its failure. Otherwise a failed attempt is not stored.
//
// The pool closes a session whose Omni sent too much, and opens it again after TooMuchDataPause, or when the connection
// changes. Until then Acquire returns the error that closed it, and nothing is sent.
//
// Errors: those of Dial; ErrTooMuchData; ErrClosed; the context's.
func (p *Pool) Acquire(ctx context.Context, identity Identity, config Config) (*Lease, error) {
	current, err := p.enter(identity, config)
	if err != nil {
		return nil, err
	}

	select {
	case <-current.opened:
	case <-ctx.Done():
		p.giveBack(current)

		return nil, fmt.Errorf("wait for the connection to Omni: %w", context.Cause(ctx))
	}

	if current.err != nil {
		p.drop(identity.UID, current)

		return nil, current.err
	}

	return p.lease(identity.UID, current), nil
}

// Get returns the session that is open for a connection now, without opening one; false if there is none.
func (p *Pool) Get(uid string) (*Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	current := p.entries[uid]
	if current == nil || current.session == nil {
		return nil, false
	}

	current.leases++

	return p.lease(uid, current), true
}

// Forget closes a connection's session after its last lease is released.
func (p *Pool) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.retire(uid)
}

// Close forgets all sessions and refuses new ones.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.closed = true

	for uid := range p.entries {
		p.retire(uid)
	}
}

// How long a session may be dialled and its copy be filled for the first time before that is shown, as long as nothing has
// failed: in the first moments of a leader, and after a new key, CA or endpoint. Otherwise each routine change of a key would
// show a whole fleet as not Ready, although nothing is wrong.
const (
	// ContentsGrace is for an OmniConnection that was Ready. With thousands of clusters the copies need a while.
	ContentsGrace = 2 * time.Minute
	// ReadyGrace is for what uses an OmniConnection that is shown as Ready. Its controller shows after ContentsGrace that it
	// is not, and that wakes its users.
	ReadyGrace = ContentsGrace + 30*time.Second
	// StartGrace is the same while the OmniConnection is not shown as Ready: only a new leader waits then.
	StartGrace = 10 * time.Second
)

// ContentsGrace returns how much longer the contents of a connection may be missing; not positive if that is to be shown.
// looked is when this process first looked at any connection.
func (p *Pool) ContentsGrace(uid string, looked, now time.Time) time.Duration {
	return ContentsGrace - now.Sub(p.openedSince(uid, looked))
}

// UserGrace returns how much longer what uses a connection may lack its session or the contents; not positive if that is to
// be shown. shownReady is whether the connection is shown as Ready: then its controller says if something fails. looked is
// when this process first looked for any session.
func (p *Pool) UserGrace(uid string, shownReady bool, looked, now time.Time) time.Duration {
	if !shownReady {
		return StartGrace - now.Sub(looked)
	}

	return ReadyGrace - now.Sub(p.openedSince(uid, looked))
}

// openedSince returns when the last attempt to open a session began, unless it failed or began earlier than the given time,
// which it returns then.
func (p *Pool) openedSince(uid string, earliest time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()

	if current := p.entries[uid]; current != nil && current.err == nil && current.began.After(earliest) {
		return current.began
	}

	return earliest
}

// Lease is a session in use. Release it when the work is done; further calls of Release do nothing.
type Lease struct {
	*Session

	release     func()
	acquire     func(cluster string) (release func(), ok bool)
	releaseSlot func() // releases the slot; nil without one
}

// Enter takes one of the connection's slots for a reconcile of a cluster (its name in Omni), until Release. False means
// that all slots are taken: the caller frees its worker, and ClusterChanged wakes it when a slot is free. Enter never
// waits. A connection whose Omni answers slowly has fewer slots. Enter must not be called concurrently with Release.
func (l *Lease) Enter(cluster string) bool {
	if l.releaseSlot != nil {
		return true
	}

	release, ok := l.acquire(cluster)
	l.releaseSlot = release

	return ok
}

// Release releases the session and the slot.
func (l *Lease) Release() {
	if l.releaseSlot != nil {
		l.releaseSlot()
	}

	l.release()
}
