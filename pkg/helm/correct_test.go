package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/release/common"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// The manifest of a revision is not forced over what a later one has made, or is making: a correction may have waited for room.
func TestOnlyTheLatestRevisionIsCorrected(t *testing.T) {
	next := strings.ReplaceAll(configMap("one"), "of: demo", "of: next")

	for name, change := range map[string]func(r *tried){
		"upgraded": func(r *tried) { r.want(ActionUpgrade, next) },
		"an upgrade by hand is under way": func(r *tried) {
			r.makeOf("one", "")
			r.add(r.t, applied(2, common.StatusPendingUpgrade, next, nil))
		},
		"an upgrade by hand begins while the record is read": func(r *tried) {
			var once sync.Once

			r.before = func(request *http.Request) {
				if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, key("demo", 1)) {
					once.Do(func() {
						r.makeOf("one", "")
						r.add(r.t, applied(2, common.StatusPendingUpgrade, next, nil))
					})
				}
			}
		},
		"being uninstalled": func(r *tried) {
			r.remove(configMapPath("one"))
			r.leftUninstalling(1, "", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.want(ActionInstall, configMap("one"))
			change(r)

			_, err := r.client.Correct(t.Context(), 1, nil, mayBegin)

			var failure *Error
			if !errors.As(err, &failure) || failure.Reason != ReasonInterrupted {
				t.Errorf("got %v", err)
			}

			if r.of("one") == "demo" {
				t.Error("the older manifest was applied")
			}

			if _, err := r.client.Drift(t.Context(), 1, nil); err != nil {
				t.Errorf("it cannot be compared, either: %v", err)
			}
		})
	}
}

// A correction is asked when there is room for its record, and before it changes anything: what waits is withdrawn.
func TestACorrectionIsAskedBehindItsWait(t *testing.T) {
	r := newTried(t)

	var large strings.Builder // not its text takes much, but its values do
	for i := range 4000 {
		fmt.Fprintf(&large, ", a%d: b", i)
	}

	r.want(ActionInstall, strings.ReplaceAll(configMap("one"), "of: demo", "of: demo"+large.String()))
	r.remove(configMapPath("one"))

	release := mustTake(t, "", tenantBytes)

	var asked, written atomic.Int32

	r.before = func(request *http.Request) {
		if request.Method != http.MethodGet {
			written.Add(1)
		}
	}

	refused := &Error{Reason: ReasonInterrupted, Message: "taken back"}
	refuse := func() error { asked.Add(1); return refused }

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)

	correct := func(ctx context.Context, begin func() error) {
		_, err := r.client.Correct(ctx, 1, nil, begin)
		ended <- err
	}

	go correct(ctx, refuse)

	await.Until(t, "it waits for room", func() bool { return waiters() > 0 })
	cancel()

	var failure *Error
	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonInterrupted || asked.Load() > 0 {
		t.Errorf("%v, after it asked %d times", err, asked.Load())
	}

	// Time that is over is no stop.
	impatient := newImpatient(t)

	go correct(impatient, refuse)

	await.Until(t, "it waits for room", func() bool { return waiters() > 0 })
	impatient.end()

	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonUnavailable || asked.Load() > 0 {
		t.Errorf("%v, after it asked %d times", err, asked.Load())
	}

	release()

	go correct(t.Context(), refuse)

	if err := <-ended; !errors.Is(err, refused) || asked.Load() != 1 || written.Load() > 0 {
		t.Errorf("%v, after it asked %d times and wrote %d times", err, asked.Load(), written.Load())
	}

	go correct(t.Context(), mayBegin)

	if err := <-ended; err != nil || r.of("one") != "demo" {
		t.Errorf("%v, one is of %q", err, r.of("one"))
	}

	wantNothingHeld(t)
}

// impatient is a context whose time is over when its test says so.
type impatient struct {
	context.Context

	done chan struct{}
	end  func()
}

func newImpatient(t *testing.T) *impatient {
	t.Helper()

	done := make(chan struct{})

	return &impatient{Context: t.Context(), done: done, end: sync.OnceFunc(func() { close(done) })}
}

func (i *impatient) Done() <-chan struct{} { return i.done }

func (i *impatient) Err() error {
	select {
	case <-i.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A correction that does not return is left alone at its end, so that the release can be upgraded, or let go, in spite of it.
func TestACorrectionThatDoesNotReturnIsLeftAlone(t *testing.T) {
	r := newTried(t)
	r.want(ActionInstall, configMap("one"))
	r.remove(configMapPath("one"))

	reached, end := make(chan struct{}), make(chan struct{})
	config := r.config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch {
				close(reached)
				<-end // whatever becomes of its context
			}

			return next.RoundTrip(request)
		})
	})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() {
		_, err := New(Target{Config: config, Name: "demo", Namespace: "apps"}, logr.Discard(), 0).Correct(ctx, 1, nil, mayBegin)
		ended <- err
	}()

	<-reached
	cancel()

	var failure *Error
	if err := await.Receive(t, "it is left alone", ended); !errors.As(err, &failure) || failure.Reason != ReasonTimeout || failure.Still == nil {
		t.Fatalf("got %v", err)
	}

	close(end)
	<-failure.Still

	if r.of("one") != "" {
		t.Error("it has written after its end")
	}

	wantNothingHeld(t)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// mayBegin is what a correction asks that nobody withdraws.
func mayBegin() error { return nil }
