package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Timeouts and intervals of the liveness probe.
const (
	// SuspectAfter is how long a call may stay without an answer, while no other is answered either, until the probe is
	// sent.
	SuspectAfter = 3 * time.Second
	// ProbeTimeout is the timeout of the probe. An Omni that needs longer to read one resource by its ID counts as silent.
	ProbeTimeout = 8 * time.Second
	// probeMinPause and probeMaxPause bound the pause between two probes of a silent Omni: it doubles each time, and is
	// shortened by up to half at random.
	probeMinPause = time.Second
	probeMaxPause = 5 * time.Second
	// slowAfter is how long a call may take until the Omni counts as slow, and slowMemory how long it counts as slow after
	// the last such call.
	slowAfter  = time.Second
	slowMemory = 3 * time.Second
	// failuresToNotice is how many calls in a row must have failed for a success to be reported to waiting clusters.
	failuresToNotice = 3
)

// liveness detects a silent Omni: one that accepts calls and answers none, which costs every caller its whole deadline.
// While the Omni is silent, all calls fail at once and only the probe is sent, so that no caller waits.
//
// One call that hangs is no proof: other calls may be answered meanwhile. So a cheap call of our own, outside of any
// worker, settles the suspicion.
type liveness struct {
	life             context.Context //nolint:containedctx // the life of the connection
	probe            func(context.Context) error
	closeConnections func() // closes the network connections; may be nil
	changed          func() // called when callers should retry; must not block
	times            livenessTimes

	mu          sync.Mutex
	calls       map[*pendingCall]struct{}
	answered    time.Time // the last answer
	slow        time.Time // the last slow answer
	failures    int       // in a row
	probing     bool
	silent      time.Time       // since when; zero: not silent
	reason      string          // of the silence
	callsCtx    context.Context //nolint:containedctx // the life of one attempt of the streams
	cancelCalls context.CancelFunc
}

// livenessTimes are the constants of the same names; tests use shorter times.
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
	p.callsCtx, p.cancelCalls = context.WithCancel(life)

	if p.changed == nil {
		p.changed = func() {}
	}

	return p
}

// start enables the probe. Before, calls are only counted.
func (p *liveness) start(probe func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.probe = probe
}

// begin records a call. The returned context ends when the Omni falls silent; end records the outcome, and returns the
// error for the caller.
func (p *liveness) begin(ctx context.Context) (_ context.Context, end func(error) error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.silent.IsZero() {
		return nil, nil, p.silence()
	}

	callsCtx := p.callsCtx
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(callsCtx, cancel)
	call := &pendingCall{started: time.Now()}
	p.calls[call] = struct{}{}
	call.alarm = time.AfterFunc(p.times.suspect, func() { p.checkSuspicion(call) })

	return ctx, func(err error) error {
		stop()
		cancel()

		return p.finish(call, callsCtx, err)
	}, nil
}

func (p *liveness) finish(call *pendingCall, callsCtx context.Context, err error) error {
	p.mu.Lock()
	call.alarm.Stop()
	delete(p.calls, call)

	if callsCtx.Err() != nil && p.life.Err() == nil && err != nil {
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

// count records an outcome, and reports whether it ends a row of failures. The caller holds the lock.
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

// health returns since when the Omni is silent; true if it is not.
func (p *liveness) health() (mirror.Health, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.silent.IsZero() {
		return mirror.Health{}, true
	}

	return mirror.Health{Since: p.silent, Class: omni.ClassUnreachable, Message: fmt.Sprintf("Omni has answered no call since %s: %s",
		words.Time(p.silent), p.reason)}, false
}

// isSlow reports whether calls take long, so that callers must expect to wait.
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

// expect records that a stream waits for its first message. answered may be called many times; stopExpecting must be
// called at the end, whatever it was.
func (p *liveness) expect() (answered, stopExpecting func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.silent.IsZero() {
		return nil, nil, p.silence()
	}

	call := &pendingCall{started: time.Now()}
	p.calls[call] = struct{}{}
	call.alarm = time.AfterFunc(p.times.suspect, func() { p.checkSuspicion(call) })

	stopExpecting = func() {
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
	}, stopExpecting, nil
}

// checkSuspicion starts the probe, unless other calls are answered.
func (p *liveness) checkSuspicion(call *pendingCall) {
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

	go p.probeUntilAnswered()
}

// probeUntilAnswered repeats the probe until it is answered. The first unanswered probe marks the Omni as silent.
func (p *liveness) probeUntilAnswered() {
	for pauses := limiter.NewBackoff(p.times.minPause, p.times.maxPause); ; {
		ctx, cancel := context.WithTimeout(p.life, p.times.probe)
		err := p.probe(ctx)

		cancel()

		if p.life.Err() != nil {
			return
		}

		if omni.Classify(err) != omni.ClassUnreachable {
			p.returned()

			return
		}

		p.fellSilent(err)

		select {
		case <-p.life.Done():
			return
		case <-time.After(pauses.Next()):
		}
	}
}

func (p *liveness) returned() {
	p.mu.Lock()
	p.probing, p.answered = false, time.Now()
	news := !p.silent.IsZero()

	if news {
		p.silent, p.slow, p.failures = time.Time{}, time.Time{}, 0
		p.callsCtx, p.cancelCalls = context.WithCancel(p.life)
	}

	p.mu.Unlock()

	if news {
		p.changed()
	}
}

func (p *liveness) fellSilent(err error) {
	p.mu.Lock()
	news := p.silent.IsZero()
	p.reason = omni.Message(err)

	if news {
		p.silent = time.Now()
	}

	cancelCalls := p.cancelCalls
	p.mu.Unlock()

	// Lost packets leave a connection that looks healthy for minutes, even after the network is back.
	if p.closeConnections != nil {
		p.closeConnections()
	}

	if news {
		cancelCalls()
		p.changed()
	}
}

// silence returns the error of a call that is not sent. The caller holds the lock.
func (p *liveness) silence() error {
	return status.Errorf(codes.DeadlineExceeded, "it has answered no call since %s and is asked again every few seconds",
		words.Time(p.silent))
}
