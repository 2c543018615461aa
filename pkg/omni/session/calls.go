package session

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

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// callRules applies a deadline and the rate limit to every call of one connection, measures it, and reports its
// outcome to the liveness check.
type callRules struct {
	limiter   *rate.Limiter
	observer  RequestObserver
	throttled func(time.Duration)
	liveness  *liveness
	refusals  *keyRefusals
}

func newCallRules(config Config, liveness *liveness) *callRules {
	limits := config.Limits.WithDefaults()
	r := &callRules{
		limiter: rate.NewLimiter(rate.Limit(limits.QPS), limits.Burst), observer: config.Observer, throttled: config.Throttled, liveness: liveness,
		refusals: newKeyRefusals(nil),
	}

	if r.observer == nil {
		r.observer = func(string, string, time.Duration) {}
	}

	if r.throttled == nil {
		r.throttled = func(time.Duration) {}
	}

	return r
}

// probing marks a call of the liveness probe itself, which bypasses the rate limit and the liveness check.
type probing struct{}

func (r *callRules) observe(ctx context.Context, method string, started time.Time, err error) {
	r.refusals.note(ctx, err)
	r.observer(method, knownCode(err).String(), time.Since(started))
}

// knownCode returns the gRPC code of an error. An Omni may send any number as its code: those without a meaning are one,
// because each code that is observed is kept.
func knownCode(err error) codes.Code {
	code := status.Code(err)
	if code > codes.Unauthenticated {
		return codes.Unknown
	}

	return code
}

func (r *callRules) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	end := func(err error) error { return err }

	if ctx.Value(probing{}) == nil {
		if err := r.waitForRate(ctx); err != nil {
			return err
		}

		var err error
		if ctx, end, err = r.liveness.begin(ctx); err != nil {
			return err
		}
	}

	started, guard := time.Now(), guardOf(method)
	err := guard.explain(invoke(ctx, method, request, reply, conn, guard.options(options)...))
	r.observe(ctx, method, started, err)

	return end(err)
}

func (r *callRules) stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := streamContext(ctx, method)

	if err := r.waitForRate(ctx); err != nil {
		defer cancel()

		return nil, err
	}

	answered, stopExpecting, err := r.liveness.expect()
	if err != nil {
		defer cancel()

		return nil, err
	}

	measured := &measuredStream{answered: answered, guard: guardOf(method)}
	started := time.Now()

	if watch := bounds.WatchOf(ctx); watch != nil {
		measured.guard = guardOfWatch(watch)
	}

	stream, err := open(ctx, description, conn, method, measured.guard.options(options)...)
	if err != nil {
		cancel()
		stopExpecting()
		r.observe(ctx, method, started, err)

		return nil, err
	}

	var once sync.Once

	measured.ClientStream = stream
	measured.ended = func(err error) {
		once.Do(func() {
			r.observe(ctx, method, started, err)
			stopExpecting()
			cancel()
		})
	}

	return measured, nil
}

// waitForRate waits for the rate limiter, but only for a short time: a caller that would wait longer gets an error and
// retries later, so that it holds no worker.
func (r *callRules) waitForRate(ctx context.Context) error {
	asked := time.Now()

	waiting, stop := context.WithTimeout(ctx, bounds.MaxThrottle)
	defer stop()

	err := r.limiter.Wait(waiting)

	// A shorter time is the overhead of the limiter.
	if waited := time.Since(asked); waited > time.Millisecond {
		r.throttled(waited)
	}

	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return status.Error(codes.Canceled, "canceled before it was sent")
	default:
		return status.Error(codes.ResourceExhausted, "not sent: too many calls to this Omni at once for the rate limit (--omni-qps, --omni-burst); it is tried again")
	}
}

// streamContext gives a List the deadline of a call; a Watch lives as long as its caller's context.
func streamContext(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if strings.HasSuffix(method, "/Watch") {
		return context.WithCancel(ctx)
	}

	return context.WithTimeout(ctx, omni.CallTimeout)
}

// measuredStream detects the end of a stream: the moment when its last message was received.
type measuredStream struct {
	grpc.ClientStream

	guard    *guard
	answered func()
	ended    func(error)
}

// RecvMsg implements grpc.ClientStream.
func (s *measuredStream) RecvMsg(message any) error {
	_ = s.guard.watch.Handle(0) // the message before has been handled; a watch that has ended gets no other

	err := s.guard.explain(s.ClientStream.RecvMsg(message))

	switch {
	case err == nil:
		s.answered()
	case errors.Is(err, io.EOF):
		s.ended(nil)
	default:
		s.ended(err)
	}

	return err
}
