package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
)

// Times of the liveness probe.
const (
	// SuspectAfter is how long a call may stay without an answer, while no other
	// is answered either, until the Omni is asked whether it is still there.
	SuspectAfter = 3 * time.Second
	// ProbeTimeout is how long that question may take. An Omni that needs longer
	// to read one resource by its ID counts as silent.
	ProbeTimeout = 8 * time.Second
	// probeMinPause and probeMaxPause bound the pause between two questions to a
	// silent Omni: doubled each time, and up to half of it taken off at random.
	probeMinPause = time.Second
	probeMaxPause = 5 * time.Second
	// slowAfter is how long a call may take until the Omni counts as slow, and
	// slowMemory how long it does so after the last such call.
	slowAfter  = time.Second
	slowMemory = 3 * time.Second
	// failuresToNotice is how many calls in a row must have failed for a success
	// to be news that other clusters wait for.
	failuresToNotice = 3
)

// liveness notices that an Omni has fallen silent: it takes calls and answers none,
// which costs every caller its whole deadline. While it is silent, no call is
// sent but the question whether it is back, so that nobody waits for it.
//
// A call that hangs is no proof: other calls may be answered meanwhile. So the
// doubt is settled by a cheap call of our own, outside of any worker.
type liveness struct {
	life    context.Context //nolint:containedctx // the life of the connection
	probe   func(context.Context) error
	sever   func() // closes the network connections; may be nil
	changed func() // told that callers should look again; must not block
	times   livenessTimes

	mu       sync.Mutex
	calls    map[*pendingCall]struct{}
	answered time.Time // the last answer
	slow     time.Time // the last answer that took long
	failures int       // in a row
	probing  bool
	silent   time.Time       // since when; zero: it answers
	reason   string          // of the silence
	round    context.Context //nolint:containedctx // the life of one attempt of the streams
	hangUp   context.CancelFunc
}

// livenessTimes are the constants of the same names, shorter in tests.
type livenessTimes struct{ suspect, probe, minPause, maxPause, slow time.Duration }

// pendingCall is one call that has no answer yet.
type pendingCall struct {
	started time.Time
	alarm   *time.Timer
}

func newLiveness(life context.Context, changed func()) *liveness {
	p := &liveness{
		life: life, changed: changed, calls: map[*pendingCall]struct{}{},
		times: livenessTimes{SuspectAfter, ProbeTimeout, probeMinPause, probeMaxPause, slowAfter},
	}
	p.round, p.hangUp = context.WithCancel(life)

	if p.changed == nil {
		p.changed = func() {}
	}

	return p
}

// start lets the probe ask. Before, it only counts.
func (p *liveness) start(probe func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.probe = probe
}

// begin notes a call. The returned context ends when the Omni falls silent; end
// takes the outcome, and returns what the caller is told.
func (p *liveness) begin(ctx context.Context) (_ context.Context, end func(error) error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.silent.IsZero() {
		return nil, nil, p.silence()
	}

	round := p.round
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(round, cancel)
	call := &pendingCall{started: time.Now()}
	p.calls[call] = struct{}{}
	call.alarm = time.AfterFunc(p.times.suspect, func() { p.doubt(call) })

	return ctx, func(err error) error {
		stop()
		cancel()

		return p.finish(call, round, err)
	}, nil
}

func (p *liveness) finish(call *pendingCall, round context.Context, err error) error {
	p.mu.Lock()
	call.alarm.Stop()
	delete(p.calls, call)

	if round.Err() != nil && p.life.Err() == nil && err != nil {
		defer p.mu.Unlock()

		return p.silence()
	}

	if time.Since(call.started) > p.times.slow {
		p.slow = time.Now()
	}

	news := p.count(err)
	p.mu.Unlock()

	if news {
		p.changed()
	}

	return err
}

// count takes over an outcome, and tells whether it ends a row of failures. The
// caller holds the lock.
func (p *liveness) count(err error) (news bool) {
	switch status.Code(err) { //nolint:exhaustive // everything else is an answer of Omni's own logic
	case codes.Canceled:
		return false
	case codes.DeadlineExceeded, codes.Unavailable:
		p.failures++

		return false
	case codes.Internal, codes.Unknown, codes.ResourceExhausted:
		p.answered = time.Now()
		p.failures++

		return false
	}

	p.answered = time.Now()
	news = p.failures >= failuresToNotice
	p.failures = 0

	return news
}

// health tells since when the Omni is silent, if it is.
func (p *liveness) health() (mirror.Health, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.silent.IsZero() {
		return mirror.Health{}, true
	}

	return mirror.Health{Since: p.silent, Class: omni.ClassUnreachable, Message: fmt.Sprintf("Omni has answered no call since %s: %s",
		p.silent.UTC().Format(time.RFC3339), p.reason)}, false
}

// isSlow reports whether calls take long, so that a caller has to expect to wait.
func (p *liveness) isSlow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.slow.IsZero() && time.Since(p.slow) < slowMemory {
		return true
	}

	for call := range p.calls {
		if time.Since(call.started) > p.times.slow {
			return true
		}
	}

	return false
}
