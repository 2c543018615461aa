package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
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
