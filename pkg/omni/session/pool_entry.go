package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
)

// entry is one session, or the attempt to open one.
type entry struct {
	fingerprint string
	began       time.Time
	opened      chan struct{} // closed when session or err is set
	cancel      context.CancelFunc
	session     *Session
	account     *bounds.Account // nil until the mirror begins
	err         error
	leases      int
	retired     bool      // replaced or forgotten: close after the last lease
	until       time.Time // err is returned until then
}

// enter finds or starts the entry and counts a lease on it.
func (p *Pool) enter(identity Identity, config Config) (*entry, error) {
	fingerprint := fingerprintOf(identity, config)

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.closed {
		return nil, omni.ErrClosed
	}

	current := p.entries[identity.UID]
	if current == nil || current.fingerprint != fingerprint || !current.until.IsZero() && time.Now().After(current.until) {
		p.retire(identity.UID)

		current = p.start(identity, fingerprint, config)
		p.entries[identity.UID] = current
	}

	current.leases++

	return current, nil
}

// start dials in the background, so that a caller that gives up does not make the others fail. The caller holds the
// lock.
func (p *Pool) start(identity Identity, fingerprint string, config Config) *entry {
	uid := identity.UID
	ctx, cancel := context.WithCancel(p.ctx)
	started := &entry{fingerprint: fingerprint, began: time.Now(), opened: make(chan struct{}), cancel: cancel}

	original := config
	mirror := p.options.Mirror
	mirror.Upgraded = func() { p.reopen(identity, started, original) }
	mirror.ClusterChanged = func(cluster string) { p.options.ClusterChanged(uid, cluster) }
	mirror.HealthChanged = func() { p.options.HealthChanged(uid) }
	mirror.Overflowed = func(err error) { p.refuse(uid, started, err) }
	mirror.Open = func(over func(error)) *bounds.Account { return p.openAccount(started, identity.Owner, over) }

	if observe := p.options.Observer; observe != nil {
		config.Observer = func(method, code string, duration time.Duration) { observe(uid, method, code, duration) }
	}

	if throttled := p.options.Throttled; throttled != nil {
		config.Throttled = func(waited time.Duration) { throttled(uid, waited) }
	}

	config.Limits, config.Guard = p.options.Limits, p.options.Guard
	config.LivenessChanged = func() {
		if session := p.sessionOf(started); session != nil {
			session.livenessChanged()
		}

		p.options.HealthChanged(uid)
	}

	config.Refused = func() { p.options.KeyRefused(uid) }

	go func() {
		session, err := p.options.Open(ctx, config, mirror)
		p.finish(uid, started, session, err)
	}()

	return started
}

// openAccount opens the account of a session that has been opened. It may have been retired meanwhile.
func (p *Pool) openAccount(started *entry, owner string, over func(error)) *bounds.Account {
	account := p.budget.Open(owner, over)

	p.mu.Lock()
	defer p.mu.Unlock()

	started.account = account
	if started.retired {
		account.Retire()
	}

	return account
}

// lease returns a lease on the open session of a connection.
func (p *Pool) lease(uid string, current *entry) *Lease {
	return &Lease{
		Session: current.session,
		release: sync.OnceFunc(func() { p.giveBack(current) }),
		acquire: func(cluster string) (func(), bool) {
			return p.limiter.TryAcquire(uid, 1, limiter.Waiter{Name: cluster, Wake: func() { p.options.ClusterChanged(uid, cluster) }})
		},
	}
}

// slow reports whether the Omni of a connection answers slowly now.
func (p *Pool) slow(uid string) bool {
	var session *Session

	p.mu.Lock()

	if current := p.entries[uid]; current != nil {
		session = current.session
	}

	p.mu.Unlock()

	return session != nil && session.Slow()
}

func (p *Pool) sessionOf(current *entry) *Session {
	p.mu.Lock()
	defer p.mu.Unlock()

	return current.session
}

// finish records the end of an attempt.
func (p *Pool) finish(uid string, started *entry, session *Session, err error) {
	p.mu.Lock()

	started.session, started.err = session, err
	close(started.opened)

	news := err == nil || !started.retired && started.leases == 0

	if err != nil && p.entries[uid] == started && started.leases > 0 {
		p.retire(uid)
	}

	p.closeIfUnused(started)
	p.mu.Unlock()

	// The mirror may have called HealthChanged before Get could find the session, and a caller that gave up waiting has to
	// come back for the failure.
	if news {
		p.options.HealthChanged(uid)
	}
}

// refuse closes a session whose Omni sent too much, and keeps it closed for TooMuchDataPause.
func (p *Pool) refuse(uid string, overflowed *entry, err error) {
	p.mu.Lock()

	if p.entries[uid] == overflowed {
		p.retire(uid)

		refused := &entry{fingerprint: overflowed.fingerprint, opened: make(chan struct{}), cancel: func() {}, err: err, until: time.Now().Add(p.options.TooMuchDataPause)}
		close(refused.opened)

		p.entries[uid] = refused
	}

	p.mu.Unlock()
	p.options.HealthChanged(uid)
}

// reopenPause is how long a session lives at least before it is replaced because its Omni is another version: two versions
// behind one address would else have it replaced without a pause.
const reopenPause = 5 * time.Second

// reopen replaces a session whose Omni is another version now: what it serves has to be asked again. Nobody need come
// for that, and until it is open, its users see a connection that is being opened.
func (p *Pool) reopen(identity Identity, upgraded *entry, config Config) {
	if early := reopenPause - time.Since(upgraded.began); early > 0 {
		time.AfterFunc(early, func() { p.reopen(identity, upgraded, config) })

		return
	}

	p.mu.Lock()

	if p.entries[identity.UID] == upgraded && !p.closed {
		p.retire(identity.UID)
		p.entries[identity.UID] = p.start(identity, upgraded.fingerprint, config)
	}

	p.mu.Unlock()
	p.options.HealthChanged(identity.UID)
}

// drop releases a failed attempt, so that the next caller makes a new one.
func (p *Pool) drop(uid string, failed *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.entries[uid] == failed && failed.until.IsZero() {
		p.retire(uid)
	}

	failed.leases--
	p.closeIfUnused(failed)
}

// retire removes an entry from the pool. The caller holds the lock.
func (p *Pool) retire(uid string) {
	current := p.entries[uid]
	if current == nil {
		return
	}

	delete(p.entries, uid)

	current.retired = true
	current.account.Retire()
	p.closeIfUnused(current)
}

func (p *Pool) giveBack(current *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()

	current.leases--
	p.closeIfUnused(current)
}

// closeIfUnused ends a retired entry without leases. Stopping a mirror waits for its goroutines, which may be in a
// callback, so it runs in a goroutine of its own. The caller holds the lock.
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

// openSession dials within dialCtx, asks what Omni serves, and starts a mirror that lives as long as lifeCtx.
func openSession(dialCtx, lifeCtx context.Context, config Config, copied mirror.Options) (*Session, error) {
	client, err := Dial(dialCtx, config)
	if err != nil {
		return nil, err
	}

	can, err := askCapabilities(dialCtx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}

	copied.Served, copied.Version = can.Serves, can.Version

	return &Session{client: client, live: client.State(), mirror: mirror.Start(lifeCtx, client.State(), copied), version: can.Version}, nil
}

// askCapabilities returns what Omni serves, or the error if that is too little. It is bounded by CallTimeout.
func askCapabilities(ctx context.Context, client *Client) (*omni.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	can, err := omni.ReadCapabilities(ctx, client.State(), mirror.Kinds())
	if err != nil {
		return nil, err
	}

	return can, can.RequireKinds(mirror.RequiredKinds())
}

// fingerprintOf hashes everything that requires a new session if it changes. It includes the key, to detect another key
// in the same Secret.
func fingerprintOf(identity Identity, config Config) string {
	sum := sha256.New()

	fmt.Fprintf(sum, "%q %q %q %t %d:", identity.UID, identity.SecretUID, config.Endpoint, config.InsecureSkipTLSVerify, len(config.CABundle))
	sum.Write(config.CABundle)
	sum.Write([]byte(config.Key.material()))

	return hex.EncodeToString(sum.Sum(nil))
}
