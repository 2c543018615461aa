package omnisim

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault is a failure of requests. First comes the delay, then the hanging, then the code; a fault with neither hanging
// nor code only delays. With AnswerLost the request is carried out before all of that.
type Fault struct {
	// Method is the last part of the gRPC method: Get, List, Create, Update, Destroy, Teardown,
	// TeardownAndDestroy, Watch, Kubeconfig and so on. Empty means every method.
	Method string
	// Type is the resource type. Empty means every type, and the management service.
	Type resource.Type
	// Writes limits the fault to requests that change resources.
	Writes bool
	// After is how many matching requests pass first.
	After int
	// Times is how many requests the fault hits. Zero means all until the fault is removed.
	Times int
	// OnHit is called, if set, when the fault hits a request, before the delay. It must not block.
	OnHit func()
	// Delay is how long the request waits before anything else.
	Delay time.Duration
	// Hang keeps the request without an answer until its deadline, the removal of the fault or the end of the server.
	Hang bool
	// AnswerLost has the request carried out first: only its answer is lost, as when a connection breaks. It is for
	// requests with one answer; streams ignore it.
	AnswerLost bool
	// Code is the code of the answer. OK lets the request pass after the delay.
	Code codes.Code
	// Message is the text of the answer. Default: "injected by a test".
	Message string
}

// Inject makes requests fail. The returned function removes the fault and lets hanging requests continue. Faults hit
// requests before their signature is verified.
func (s *Server) Inject(fault Fault) (remove func()) { return s.faults.inject(fault) }

// ResetStreams ends every open stream, such as watches, with code Unavailable.
func (s *Server) ResetStreams() { s.faults.resetStreams() }

// faults holds the active faults and the open streams.
type faults struct {
	mu      sync.Mutex
	active  []*activeFault
	streams map[*resettableStream]struct{}
	flood   *flood
}

type activeFault struct {
	Fault
	passing int // matching requests that still pass
	left    int // requests that are still hit, if Times is set
	removed chan struct{}
	once    sync.Once
}

func (f *activeFault) remove() { f.once.Do(func() { close(f.removed) }) }

func newFaults() *faults { return &faults{streams: map[*resettableStream]struct{}{}} }

func (f *faults) inject(fault Fault) func() {
	active := &activeFault{Fault: fault, passing: fault.After, left: fault.Times, removed: make(chan struct{})}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.active = append(f.active, active)

	return func() {
		f.mu.Lock()
		f.active = slices.DeleteFunc(f.active, func(other *activeFault) bool { return other == active })
		f.mu.Unlock()

		active.remove()
	}
}

// releaseAll lets hanging requests continue, so that the server can stop.
func (f *faults) releaseAll() {
	f.mu.Lock()
	defer f.mu.Unlock()

	for _, active := range f.active {
		if active.Hang {
			active.remove()
		}
	}

	f.active = slices.DeleteFunc(f.active, func(active *activeFault) bool { return active.Hang })
}

// take returns the fault that hits a request, if any, and counts the hit.
func (f *faults) take(method string, resourceType resource.Type) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()

	for i, active := range f.active {
		if !active.matches(method, resourceType) {
			continue
		}

		if active.passing > 0 {
			active.passing--

			continue
		}

		if active.Times > 0 {
			if active.left--; active.left == 0 {
				f.active = slices.Delete(f.active, i, i+1)
			}
		}

		return active
	}

	return nil
}

// matches reports whether the fault applies to a kind of request.
func (f *activeFault) matches(method string, resourceType resource.Type) bool {
	switch {
	case f.Method != "" && f.Method != method, f.Type != "" && f.Type != resourceType:
		return false
	case f.Writes:
		return slices.Contains([]string{verbCreate, verbUpdate, verbTeardown, verbDestroy, "TeardownAndDestroy"}, method)
	default:
		return true
	}
}

// suffer applies the fault that hits a request.
func (f *faults) suffer(ctx context.Context, method string, resourceType resource.Type) error {
	if fault := f.take(method, resourceType); fault != nil {
		return fault.apply(ctx)
	}

	return nil
}

// apply makes a request wait and fail as the fault says.
func (f *activeFault) apply(ctx context.Context) error {
	fault := f.Fault

	if fault.OnHit != nil {
		fault.OnHit()
	}

	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()

		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}

	if fault.Hang {
		select {
		case <-f.removed:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}

	if fault.Code == codes.OK {
		return nil
	}

	text := fault.Message
	if text == "" {
		text = "injected by a test"
	}

	return status.Error(fault.Code, text)
}

func (f *faults) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	fault := f.take(path.Base(info.FullMethod), typeOf(req))
	if fault == nil {
		return handler(ctx, req)
	}

	if fault.AnswerLost {
		answer, err := handler(ctx, req)
		if lost := fault.apply(ctx); lost != nil {
			return nil, lost
		}

		return answer, err
	}

	if err := fault.apply(ctx); err != nil {
		return nil, err
	}

	return handler(ctx, req)
}

func (f *faults) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()

	resettable := &resettableStream{ServerStream: stream, ctx: ctx, cancel: cancel, faults: f, method: path.Base(info.FullMethod)}

	f.mu.Lock()
	f.streams[resettable] = struct{}{}
	f.mu.Unlock()

	err := handler(srv, resettable)

	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.streams, resettable)

	if resettable.reset {
		return status.Error(codes.Unavailable, "stream reset by a test")
	}

	return err
}

func (f *faults) resetStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()

	for stream := range f.streams {
		stream.reset = true
		stream.cancel()
	}
}

// resettableStream is a stream that a test can end, and whose request can be hit by a fault.
type resettableStream struct {
	grpc.ServerStream
	ctx    context.Context
	cancel context.CancelFunc
	faults *faults
	method string
	reset  bool // guarded by faults.mu
	flood  *flood
}

// Context ends when the stream is reset.
func (s *resettableStream) Context() context.Context { return s.ctx }

// RecvMsg reads the request and applies its fault.
func (s *resettableStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}

	s.flood = s.faults.floodOf(m)

	return s.faults.suffer(s.ctx, s.method, typeOf(m))
}

// typeOf returns the resource type of a request of the resource service; empty for others.
func typeOf(req any) resource.Type {
	switch typed := req.(type) {
	case *cosiv1alpha1.CreateRequest:
		return typed.GetResource().GetMetadata().GetType()
	case *cosiv1alpha1.UpdateRequest:
		return typed.GetNewResource().GetMetadata().GetType()
	case interface{ GetType() string }:
		return typed.GetType()
	default:
		return ""
	}
}
