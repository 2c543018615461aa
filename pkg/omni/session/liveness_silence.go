package session

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

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
