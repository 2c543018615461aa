package omni

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callPolicy gives every call of one connection a deadline, a place in the
// rate limit and a measurement.
type callPolicy struct {
	limiter  *rate.Limiter
	observer RequestObserver
}

func newCallPolicy(observer RequestObserver) *callPolicy {
	if observer == nil {
		observer = func(string, string, time.Duration) {}
	}

	return &callPolicy{limiter: rate.NewLimiter(RequestsPerSecond, RequestBurst), observer: observer}
}

func (p *callPolicy) observe(method string, started time.Time, err error) {
	p.observer(method, status.Code(err).String(), time.Since(started))
}

func (p *callPolicy) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()

	if err := p.limiter.Wait(ctx); err != nil {
		return notSent(ctx)
	}

	started := time.Now()
	err := invoke(ctx, method, request, reply, conn, options...)
	p.observe(method, started, err)

	return err
}

func (p *callPolicy) stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := streamContext(ctx, method)

	waiting, stop := context.WithTimeout(ctx, CallTimeout)
	defer stop()

	if err := p.limiter.Wait(waiting); err != nil {
		defer cancel()

		return nil, notSent(ctx)
	}

	measured := &measuredStream{}
	started := time.Now()

	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		cancel()
		p.observe(method, started, err)

		return nil, err
	}

	var once sync.Once

	measured.ClientStream = stream
	measured.ended = func(err error) {
		once.Do(func() {
			p.observe(method, started, err)
			cancel()
		})
	}

	return measured, nil
}

// notSent is the error of a call that never got its turn: the caller gave up,
// or the turn would come after the deadline.
func notSent(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return status.Error(codes.Canceled, "canceled before it was sent")
	}

	return status.Error(codes.DeadlineExceeded, "too many calls to this Omni at once: the rate limit left no turn before the deadline")
}

// streamContext bounds a List like any call; a Watch lives as long as its
// caller wants.
func streamContext(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if strings.HasSuffix(method, "/Watch") {
		return context.WithCancel(ctx)
	}

	return context.WithTimeout(ctx, CallTimeout)
}

// measuredStream notices the end of a stream, which is when its last message
// was received.
type measuredStream struct {
	grpc.ClientStream

	ended func(error)
}

// RecvMsg implements grpc.ClientStream.
func (s *measuredStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)

	switch err {
	case nil:
	case io.EOF:
		s.ended(nil)
	default:
		s.ended(err)
	}

	return err
}
