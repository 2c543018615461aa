package session

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/backoff"
)

// expect notes that the first message of a stream is waited for; it may be heard
// many times, and has to be given up at the end.
func (p *liveness) expect() (heard, giveUp func(), err error) {
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
func (p *liveness) doubt(call *pendingCall) {
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

	go p.backToNormal()
}

// backToNormal asks until there is an answer. The first question that finds none
// declares the Omni silent.
func (p *liveness) backToNormal() {
	for pauses := backoff.New(p.times.minPause, p.times.maxPause); ; {
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
		p.round, p.hangUp = context.WithCancel(p.life)
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
func (p *liveness) silence() error {
	return status.Errorf(codes.DeadlineExceeded, "it has answered no call since %s and is asked again every few seconds",
		p.silent.UTC().Format(time.RFC3339))
}
