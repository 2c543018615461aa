package omni

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Times of the pulse.
const (
	// SuspectAfter is how long a call may stay without an answer, while no other
	// is answered either, until the Omni is asked whether it is still there.
	SuspectAfter = 3 * time.Second
	// ProbeTimeout is how long that question may take. An Omni that needs longer
	// to read one resource by its ID counts as silent.
	ProbeTimeout = 8 * time.Second
	// ProbeMinPause and ProbeMaxPause bound the pause between two questions to a
	// silent Omni: doubled each time, and up to half of it taken off at random.
	ProbeMinPause = time.Second
	ProbeMaxPause = 5 * time.Second
	// SlowAfter is how long a call may take until the Omni counts as slow, and
	// slowMemory how long it does so after the last such call.
	SlowAfter  = time.Second
	slowMemory = 3 * time.Second
	// failuresToNotice is how many calls in a row must have failed for a success
	// to be news that other clusters wait for.
	failuresToNotice = 3
)

// pulse notices that an Omni has fallen silent: it takes calls and answers none,
// which costs every caller its whole deadline. While it is silent, no call is
// sent but the question whether it is back, so that nobody waits for it.
//
// A call that hangs is no proof: other calls may be answered meanwhile. So the
// doubt is settled by a cheap call of our own, outside of any worker.
type pulse struct {
	life    context.Context //nolint:containedctx // the life of the connection
	probe   func(context.Context) error
	sever   func() // closes the network connections; may be nil
	changed func() // told that callers should look again; must not block
	times   pulseTimes

	mu       sync.Mutex
	calls    map[*pendingCall]struct{}
	answered time.Time // the last answer
	slow     time.Time // the last answer that took long
	failures int       // in a row
	probing  bool
	silent   time.Time // since when; zero: it answers
	reason   string    // of the silence
	round    context.Context
	hangUp   context.CancelFunc
}

// pulseTimes are the constants of the same names, shorter in tests.
type pulseTimes struct{ suspect, probe, minPause, maxPause, slow time.Duration }

// pendingCall is one call that has no answer yet.
type pendingCall struct {
	started time.Time
	alarm   *time.Timer
}

func newPulse(life context.Context, changed func()) *pulse {
	p := &pulse{
		life: life, changed: changed, calls: map[*pendingCall]struct{}{},
		times: pulseTimes{SuspectAfter, ProbeTimeout, ProbeMinPause, ProbeMaxPause, SlowAfter},
	}
	p.round, p.hangUp = context.WithCancel(life)

	if p.changed == nil {
		p.changed = func() {}
	}

	return p
}

// start lets the pulse ask. Before, it only counts.
func (p *pulse) start(probe func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.probe = probe
}

// begin notes a call. The returned context ends when the Omni falls silent; end
// takes the outcome, and returns what the caller is told.
func (p *pulse) begin(ctx context.Context) (_ context.Context, end func(error) error, err error) {
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

func (p *pulse) finish(call *pendingCall, round context.Context, err error) error {
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
func (p *pulse) count(err error) (news bool) {
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

// expect notes that the first message of a stream is waited for; it may be heard
// many times, and has to be given up at the end.
func (p *pulse) expect() (heard, giveUp func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.silent.IsZero() {
		return nil, nil, p.silence()
	}

	call := &pendingCall{started: time.Now()}
	p.calls[call] = struct{}{}
	call.alarm = time.AfterFunc(p.times.suspect, func() { p.doubt(call) })

	giveUp = func() {
		p.mu.Lock()
		defer p.mu.Unlock()

		call.alarm.Stop()
		delete(p.calls, call)
	}

	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()

		p.answered = time.Now()
		call.alarm.Stop()
		delete(p.calls, call)
	}, giveUp, nil
}

// doubt asks whether the Omni is still there, unless others are being answered.
func (p *pulse) doubt(call *pendingCall) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if _, pending := p.calls[call]; !pending || p.life.Err() != nil {
		return
	}

	call.alarm.Reset(p.times.suspect)

	if p.probing || p.probe == nil || time.Since(p.answered) < p.times.suspect {
		return
	}

	p.probing = true

	go p.settle()
}

// settle asks until there is an answer. The first question that finds none
// declares the Omni silent.
func (p *pulse) settle() {
	for pause := p.times.minPause; ; pause = min(2*pause, p.times.maxPause) {
		ctx, cancel := context.WithTimeout(p.life, p.times.probe)
		err := p.probe(ctx)

		cancel()

		if p.life.Err() != nil {
			return
		}

		if Classify(err) != ClassUnreachable {
			p.returned()

			return
		}

		p.fellSilent(err)

		select {
		case <-p.life.Done():
			return
		case <-time.After(pause - rand.N(pause/2+1)):
		}
	}
}

func (p *pulse) returned() {
	p.mu.Lock()
	p.probing, p.answered = false, time.Now()
	news := !p.silent.IsZero()

	if news {
		p.silent, p.slow, p.failures = time.Time{}, time.Time{}, 0
		p.round, p.hangUp = context.WithCancel(p.life)
	}

	p.mu.Unlock()

	if news {
		p.changed()
	}
}

func (p *pulse) fellSilent(err error) {
	p.mu.Lock()
	news := p.silent.IsZero()
	p.reason = Message(err)

	if news {
		p.silent = time.Now()
	}

	hangUp := p.hangUp
	p.mu.Unlock()

	// Packets that vanished leave a connection that looks well for minutes,
	// also after the network is back.
	if p.sever != nil {
		p.sever()
	}

	if news {
		hangUp()
		p.changed()
	}
}

// silence is the error of a call that is not sent. The caller holds the lock.
func (p *pulse) silence() error {
	return status.Errorf(codes.DeadlineExceeded, "it has answered no call since %s and is asked again every few seconds",
		p.silent.UTC().Format(time.RFC3339))
}

// health tells since when the Omni is silent, if it is.
func (p *pulse) health() (Health, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.silent.IsZero() {
		return Health{}, true
	}

	return Health{Since: p.silent, Class: ClassUnreachable, Message: fmt.Sprintf("Omni has answered no call since %s: %s",
		p.silent.UTC().Format(time.RFC3339), p.reason)}, false
}

// isSlow tells whether calls take long, so that a caller has to expect to wait.
func (p *pulse) isSlow() bool {
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
