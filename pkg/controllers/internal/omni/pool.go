package omni

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// Identity says which OmniConnection a session is for, and of which state.
type Identity struct {
	// UID is the OmniConnection's UID.
	UID string
	// SecretVersion is the resourceVersion of the key's Secret.
	SecretVersion string
}

// PoolOptions configures a Pool. Callbacks may be nil and must not block.
type PoolOptions struct {
	// ClusterChanged is told of a change in Omni: the connection's UID and the
	// name of the cluster there.
	ClusterChanged func(uid, cluster string)
	// HealthChanged is told that a connection's Health changed.
	HealthChanged func(uid string)
	// Observer is told of every call of every connection.
	Observer func(uid, method, code string, duration time.Duration)
	// Throttled is told of every call that waited for the rate limit.
	Throttled func(uid string, waited time.Duration)
	// Limits is how much each connection may ask of its Omni.
	Limits Limits
	// Runs is how many runs may work with one connection at the same time; see
	// Lease.Enter. 0: no bound.
	Runs int
	// Mirror tunes the mirrors; its callbacks are ignored.
	Mirror MirrorOptions
	// Open replaces dialling, for tests.
	Open func(ctx context.Context, config Config, mirror MirrorOptions) (*Session, error)
}

// Pool keeps one session for each OmniConnection. It is safe for concurrent
// use, and no connection ever waits for another: dialling happens outside its
// lock, once for all callers that want the same.
type Pool struct {
	ctx     context.Context //nolint:containedctx // the life of the mirrors
	options PoolOptions

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry // by UID
}

// entry is one session, or the attempt to open one.
type entry struct {
	fingerprint string
	opened      chan struct{} // closed when session or err is set
	cancel      context.CancelFunc
	session     *Session
	err         error
	leases      int
	retired     bool // replaced or forgotten: close after the last lease
}

// NewPool makes an empty pool. Sessions live until ctx ends or Close.
func NewPool(ctx context.Context, options PoolOptions) *Pool {
	if options.ClusterChanged == nil {
		options.ClusterChanged = func(string, string) {}
	}

	if options.HealthChanged == nil {
		options.HealthChanged = func(string) {}
	}

	if options.Open == nil {
		options.Open = func(ctx context.Context, config Config, mirror MirrorOptions) (*Session, error) {
			return openSession(ctx, ctx, config, mirror)
		}
	}

	return &Pool{ctx: ctx, options: options, entries: map[string]*entry{}}
}

// Lease is a session in use. Release it exactly when the work is done; more
// than once does no harm.
type Lease struct {
	*Session

	release func()
	leave   func() // gives the seat back; nil without one
}

// Enter takes one of the connection's seats for a run of a cluster (its name in
// Omni), until Release. False means that enough runs work with this connection
// already: the caller gives its worker back, and ClusterChanged wakes it when a
// seat is free. It never waits. A connection whose Omni answers slowly has
// fewer seats. It must not be called at the same time as Release.
func (l *Lease) Enter(cluster string) bool {
	if l.seats == nil || l.leave != nil {
		return true
	}

	if !l.seats.enter(cluster) {
		return false
	}

	l.leave = sync.OnceFunc(l.seats.leave)

	return true
}

// Release gives the session back, and the seat.
func (l *Lease) Release() {
	if l.leave != nil {
		l.leave()
	}

	l.release()
}

// Acquire returns the session for a connection, and opens it if there is none
// or if the Secret's version, the endpoint or the CA changed. It waits for
// dialling (at most CheckTimeout) or for ctx. The replaced session is closed
// when nobody uses it any more. An attempt goes on when its callers gave up;
// HealthChanged tells its end, and its failure is for the next caller. Otherwise
// a failed attempt is not remembered.
//
// Errors: those of Dial; ErrClosed; the context's.
func (p *Pool) Acquire(ctx context.Context, identity Identity, config Config) (*Lease, error) {
	current, err := p.enter(identity, config)
	if err != nil {
		return nil, err
	}

	select {
	case <-current.opened:
	case <-ctx.Done():
		p.leave(current)

		return nil, fmt.Errorf("wait for the connection to Omni: %w", context.Cause(ctx))
	}

	if current.err != nil {
		p.drop(identity.UID, current)

		return nil, current.err
	}

	return &Lease{Session: current.session, release: sync.OnceFunc(func() { p.leave(current) })}, nil
}

// Get returns the session that is open for a connection now, without opening
// one; false if there is none.
func (p *Pool) Get(uid string) (*Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	current := p.entries[uid]
	if current == nil || current.session == nil {
		return nil, false
	}

	current.leases++

	return &Lease{Session: current.session, release: sync.OnceFunc(func() { p.leave(current) })}, true
}

// Forget closes a connection's session when nobody uses it any more.
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

// enter finds or starts the entry and counts a lease on it.
func (p *Pool) enter(identity Identity, config Config) (*entry, error) {
	fingerprint := fingerprintOf(identity, config)

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.closed {
		return nil, ErrClosed
	}

	current := p.entries[identity.UID]
	if current == nil || current.fingerprint != fingerprint {
		p.retire(identity.UID)

		current = p.start(identity.UID, fingerprint, config)
		p.entries[identity.UID] = current
	}

	current.leases++

	return current, nil
}

// start dials in the background, so that a caller that gives up does not make
// the others fail. The caller holds the lock.
func (p *Pool) start(uid, fingerprint string, config Config) *entry {
	ctx, cancel := context.WithCancel(p.ctx)
	started := &entry{fingerprint: fingerprint, opened: make(chan struct{}), cancel: cancel}

	mirror := p.options.Mirror
	mirror.ClusterChanged = func(cluster string) { p.options.ClusterChanged(uid, cluster) }
	mirror.HealthChanged = func() { p.options.HealthChanged(uid) }

	if observe := p.options.Observer; observe != nil {
		config.Observer = func(method, code string, duration time.Duration) { observe(uid, method, code, duration) }
	}

	if throttled := p.options.Throttled; throttled != nil {
		config.Throttled = func(waited time.Duration) { throttled(uid, waited) }
	}

	config.Limits = p.options.Limits
	config.Noticed = func() {
		if session := p.sessionOf(started); session != nil {
			session.noticed()
		}

		p.options.HealthChanged(uid)
	}

	go func() {
		session, err := p.options.Open(ctx, config, mirror)
		if err == nil && p.options.Runs > 0 {
			session.seats = newSeats(p.options.Runs, session.Slow, mirror.ClusterChanged)
		}

		p.finish(uid, started, session, err)
	}()

	return started
}

func (p *Pool) sessionOf(current *entry) *Session {
	p.mu.Lock()
	defer p.mu.Unlock()

	return current.session
}

func (p *Pool) finish(uid string, started *entry, session *Session, err error) {
	// The mirror may have told of its health before Get could find it, and
	// whoever gave up waiting comes for the failure.
	if p.settle(uid, started, session, err) {
		p.options.HealthChanged(uid)
	}
}

// settle takes over the end of an attempt, and tells whether it is news.
func (p *Pool) settle(uid string, started *entry, session *Session, err error) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	started.session, started.err = session, err
	close(started.opened)

	news = err == nil || !started.retired && started.leases == 0

	if err != nil && p.entries[uid] == started && started.leases > 0 {
		p.retire(uid)
	}

	p.closeIfUnused(started)

	return news
}

// drop gives a failed attempt back, so that the next caller makes a new one.
func (p *Pool) drop(uid string, failed *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.entries[uid] == failed {
		p.retire(uid)
	}

	failed.leases--
	p.closeIfUnused(failed)
}

// retire takes an entry out of the pool. The caller holds the lock.
func (p *Pool) retire(uid string) {
	current := p.entries[uid]
	if current == nil {
		return
	}

	delete(p.entries, uid)

	current.retired = true
	p.closeIfUnused(current)
}

func (p *Pool) leave(current *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()

	current.leases--
	p.closeIfUnused(current)
}

// closeIfUnused ends a retired entry that nobody uses. Stopping a mirror waits
// for its goroutines, which may be in a callback, so it happens elsewhere. The
// caller holds the lock.
func (p *Pool) closeIfUnused(current *entry) {
	if !current.retired || current.leases > 0 {
		return
	}

	current.cancel()

	if session := current.session; session != nil {
		current.session = nil

		go session.close()
	}
}

// openSession dials within dialCtx and lets the mirror live as long as lifeCtx.
func openSession(dialCtx, lifeCtx context.Context, config Config, mirror MirrorOptions) (*Session, error) {
	client, err := Dial(dialCtx, config)
	if err != nil {
		return nil, err
	}

	return &Session{client: client, live: client.State(), mirror: StartMirror(lifeCtx, client.State(), mirror)}, nil
}

// fingerprintOf hashes everything that makes a session another one. The key
// goes in as well, so that a Secret that changes twice within one
// resourceVersion's observation is still noticed.
func fingerprintOf(identity Identity, config Config) string {
	sum := sha256.New()

	fmt.Fprintf(sum, "%q %q %q %t %d:", identity.UID, identity.SecretVersion, config.Endpoint, config.InsecureSkipTLSVerify, len(config.CABundle))
	sum.Write(config.CABundle)
	sum.Write([]byte(config.Key.material()))

	return hex.EncodeToString(sum.Sum(nil))
}
