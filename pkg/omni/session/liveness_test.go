package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// quickLiveness returns a liveness with short times, and an Omni that answers the probe while up is set.
func quickLiveness(t *testing.T, up *atomic.Bool) (p *liveness, told *atomic.Int32) {
	t.Helper()

	told = &atomic.Int32{}
	p = newLiveness(t.Context(), func() { told.Add(1) })
	p.times = livenessTimes{suspect: 20 * time.Millisecond, probe: 50 * time.Millisecond, minPause: 5 * time.Millisecond, maxPause: 20 * time.Millisecond, slow: 15 * time.Millisecond}
	p.start(func(ctx context.Context) error {
		if up.Load() {
			return nil
		}

		<-ctx.Done()

		return ctx.Err()
	})

	return p, told
}

func answers(p *liveness) bool {
	_, ok := p.health()

	return ok
}

func TestSilentOmniFreesEveryCallAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			up    atomic.Bool
			group sync.WaitGroup
			cut   atomic.Int32
		)

		p, told := quickLiveness(t, &up)
		p.closeConnections = func() { cut.Add(1) }

		failed := make(chan error, 8)

		for range 8 {
			group.Go(func() {
				ctx, end, err := p.begin(t.Context())
				if err != nil {
					failed <- err

					return
				}

				<-ctx.Done() // no answer comes

				failed <- end(status.FromContextError(ctx.Err()).Err())
			})
		}

		group.Wait()
		synctest.Wait() // the calls end before changed is called
		close(failed)

		for err := range failed {
			if omni.Classify(err) != omni.ClassUnreachable {
				t.Errorf("class %s: %v", omni.Classify(err), err)
			}
		}

		if health, ok := p.health(); ok || health.Class != omni.ClassUnreachable || health.Synced || health.Message == "" {
			t.Errorf("%+v", health)
		}

		if _, _, err := p.begin(t.Context()); omni.Classify(err) != omni.ClassUnreachable {
			t.Errorf("a call to a silent Omni: %v", err)
		}

		if _, _, err := p.expect(); omni.Classify(err) != omni.ClassUnreachable {
			t.Errorf("a watch of a silent Omni: %v", err)
		}

		if told.Load() != 1 || cut.Load() == 0 {
			t.Errorf("told %d times, severed %d times", told.Load(), cut.Load())
		}

		up.Store(true)
		await.Until(t, "it is back", func() bool { return answers(p) && told.Load() == 2 })

		_, end, err := p.begin(t.Context())
		if err != nil || end(nil) != nil {
			t.Errorf("a call after its return: %v", err)
		}
	})
}

func TestACallThatHangsAloneIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool

		up.Store(true)

		p, told := quickLiveness(t, &up)

		ctx, end, err := p.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		time.Sleep(200 * time.Millisecond) // several suspicions

		if ctx.Err() != nil || !answers(p) || told.Load() != 0 {
			t.Errorf("hung up %v, answers %v, told %d times", ctx.Err(), answers(p), told.Load())
		}

		if !p.isSlow() {
			t.Error("not slow")
		}

		if err := end(nil); err != nil {
			t.Error(err)
		}

		if len(p.calls) != 0 {
			t.Error("the call is still noted")
		}
	})
}

func TestAnsweredCallsRaiseNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLiveness(t.Context(), nil)
		p.times.suspect = 10 * time.Millisecond
		p.start(func(context.Context) error {
			t.Error("it was asked")

			return nil
		})

		for range 20 {
			_, end, err := p.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			_ = end(nil)
		}

		answered, stopExpecting, err := p.expect()
		if err != nil {
			t.Fatal(err)
		}

		answered()
		answered()
		stopExpecting()
		time.Sleep(50 * time.Millisecond)

		if p.isSlow() {
			t.Error("slow")
		}
	})
}

// TestSuccessAfterFailuresIsNews checks that the end of a row of failures is reported, for callers that wait out a
// pause.
func TestSuccessAfterFailuresIsNews(t *testing.T) {
	unavailable, refused := status.Error(codes.Unavailable, "x"), status.Error(codes.InvalidArgument, "x")

	for name, test := range map[string]struct {
		outcomes []error
		told     int32
	}{
		"all well":                 {[]error{nil, nil, nil}, 0},
		"two failures":             {[]error{unavailable, unavailable, nil}, 0},
		"three failures":           {[]error{unavailable, unavailable, unavailable, nil}, 1},
		"a refusal is an answer":   {[]error{unavailable, unavailable, unavailable, refused}, 1},
		"its own failures":         {[]error{status.Error(codes.Internal, "x"), unavailable, errors.New("x"), nil}, 1},
		"we gave up ourselves":     {[]error{unavailable, unavailable, status.Error(codes.Canceled, "x"), nil}, 0},
		"told once for each row":   {[]error{unavailable, unavailable, unavailable, nil, nil, nil}, 1},
		"an interruption of a row": {[]error{unavailable, unavailable, nil, unavailable, nil}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var told atomic.Int32

			p := newLiveness(t.Context(), func() { told.Add(1) })

			for _, outcome := range test.outcomes {
				_, end, err := p.begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}

				if got := end(outcome); !errors.Is(got, outcome) {
					t.Errorf("%v became %v", outcome, got)
				}
			}

			if told.Load() != test.told {
				t.Errorf("told %d times", told.Load())
			}
		})
	}
}
