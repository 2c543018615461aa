package session

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// observed records the calls of a RequestObserver.
type observed struct{ calls []string }

func (o *observed) observe(method, code string, duration time.Duration) {
	if duration < 0 {
		code = "negative duration"
	}

	o.calls = append(o.calls, method+" "+code)
}

func TestUnaryCallsHaveADeadlineAndAreMeasured(t *testing.T) {
	var seen observed

	rules := newCallRules(Config{Observer: seen.observe}, newLiveness(t.Context(), nil))

	for _, answer := range []error{nil, status.Error(codes.NotFound, "x"), errors.New("plain")} {
		err := rules.unary(t.Context(), "/s/Get", nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if deadline, set := ctx.Deadline(); !set || time.Until(deadline) > omni.CallTimeout {
				t.Errorf("deadline %v, %v", deadline, set)
			}

			return answer
		})
		if !errors.Is(err, answer) {
			t.Errorf("error %v", err)
		}
	}

	if diff := cmp.Diff([]string{"/s/Get OK", "/s/Get NotFound", "/s/Get Unknown"}, seen.calls); diff != "" {
		t.Error(diff)
	}
}

// TestCodesAreFew checks that an Omni that invents codes cannot make observers count without end: gRPC accepts any
// number, and names it after itself.
func TestCodesAreFew(t *testing.T) {
	seen := map[string]bool{}
	rules := newCallRules(Config{Observer: func(_, code string, _ time.Duration) { seen[code] = true }}, newLiveness(t.Context(), nil))
	rules.limiter = rate.NewLimiter(rate.Inf, 1)

	for number := range 2000 {
		_ = rules.unary(t.Context(), "/s/Get", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return status.Error(codes.Code(number), "")
		})

		stream, err := rules.stream(t.Context(), nil, nil, "/s/Watch", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return &answeringStream{answers: []error{status.Error(codes.Code(number+5000), "")}}, nil
		})
		if err == nil {
			_ = stream.RecvMsg(nil)
		}
	}

	if len(seen) != 17 || !seen["Unauthenticated"] || !seen["Unknown"] {
		t.Errorf("%d codes were observed", len(seen))
	}
}

func TestRateLimit(t *testing.T) {
	var throttled time.Duration

	rules := newCallRules(Config{Throttled: func(waited time.Duration) { throttled += waited }}, newLiveness(t.Context(), nil))
	rules.limiter = rate.NewLimiter(rate.Every(time.Hour), 2)

	sent := 0
	call := func(ctx context.Context) error {
		return rules.unary(ctx, "/s/Get", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			sent++

			return nil
		})
	}

	for range 2 {
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if err := call(t.Context()); status.Code(err) != codes.ResourceExhausted || omni.Classify(err) != omni.ClassTransient || sent != 2 {
		t.Errorf("error %v after %d calls", err, sent)
	}

	_, err := rules.stream(t.Context(), nil, nil, "/s/Watch", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		t.Error("a stream was opened")

		return nil, nil
	})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("stream: %v", err)
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	if err := call(canceled); omni.Classify(err) != omni.ClassCanceled {
		t.Errorf("error %v", err)
	}
}

// TestWaitingForATurnIsCounted checks that waits for the rate limiter are reported, and end long before the deadline of
// the call.
func TestWaitingForATurnIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttled time.Duration

		rules := newCallRules(Config{
			Limits: bounds.Limits{QPS: 20, Burst: 1}, Throttled: func(waited time.Duration) { throttled += waited },
		}, newLiveness(t.Context(), nil))

		for range 3 {
			err := rules.unary(t.Context(), "/s/Get", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		// The second and the third wait for a twentieth of a second each.
		if got := throttled.Round(time.Millisecond); got != 100*time.Millisecond {
			t.Errorf("throttled for %s", throttled)
		}
	})
}

// answeringStream returns its answers one by one.
type answeringStream struct {
	grpc.ClientStream

	answers []error
}

// RecvMsg implements grpc.ClientStream.
func (s *answeringStream) RecvMsg(any) error {
	answer := s.answers[0]
	s.answers = s.answers[1:]

	return answer
}

func TestStreamsAreMeasuredAtTheirEnd(t *testing.T) {
	for name, test := range map[string]struct {
		method   string
		answers  []error
		want     []string
		deadline bool
	}{
		"a list ends":       {"/s/List", []error{nil, nil, io.EOF}, []string{"/s/List OK"}, true},
		"a list fails":      {"/s/List", []error{nil, status.Error(codes.PermissionDenied, "x")}, []string{"/s/List PermissionDenied"}, true},
		"a watch goes on":   {"/s/Watch", []error{nil, nil}, nil, false},
		"a watch is lost":   {"/s/Watch", []error{nil, status.Error(codes.Unavailable, "x")}, []string{"/s/Watch Unavailable"}, false},
		"asked once more":   {"/s/List", []error{io.EOF, io.EOF}, []string{"/s/List OK"}, true},
		"nothing was asked": {"/s/Watch", nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				seen  observed
				lived context.Context // inspected after the call
			)

			stream, err := newCallRules(Config{Observer: seen.observe}, newLiveness(t.Context(), nil)).stream(t.Context(), nil, nil, test.method,
				func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
					lived = ctx

					return &answeringStream{answers: test.answers}, nil
				})
			if err != nil {
				t.Fatal(err)
			}

			if _, set := lived.Deadline(); set != test.deadline {
				t.Errorf("deadline %v", set)
			}

			for range test.answers {
				_ = stream.RecvMsg(nil)
			}

			if diff := cmp.Diff(test.want, seen.calls); diff != "" {
				t.Error(diff)
			}

			if ended := lived.Err() != nil; ended != (len(test.want) > 0) {
				t.Errorf("context ended: %v", ended)
			}
		})
	}
}

func TestAStreamThatDoesNotOpenIsMeasured(t *testing.T) {
	var seen observed

	_, err := newCallRules(Config{Observer: seen.observe}, newLiveness(t.Context(), nil)).stream(t.Context(), nil, nil, "/s/Watch",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, status.Error(codes.Unavailable, "x")
		})

	if diff := cmp.Diff([]string{"/s/Watch Unavailable"}, seen.calls); diff != "" || status.Code(err) != codes.Unavailable {
		t.Errorf("%s, %v", diff, err)
	}
}
