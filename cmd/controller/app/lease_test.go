package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const ours, theirs = "us", "them"

// record is what the lease says, and how the hub answers.
type record struct {
	resourcelock.Interface

	holder string
	err    error
	// hangs makes each call wait until its context ends.
	hangs atomic.Bool
}

func (r *record) Identity() string { return ours }
func (r *record) Describe() string { return "apps/omni-controller" }

func (r *record) answer(ctx context.Context) error {
	if r.hangs.Load() {
		<-ctx.Done()

		return ctx.Err()
	}

	return r.err
}

func (r *record) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: r.holder, LeaseDurationSeconds: 15}, []byte(r.holder), r.answer(ctx)
}

func (r *record) Create(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	return r.answer(ctx)
}

func (r *record) Update(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	return r.answer(ctx)
}

func (r *record) RecordEvent(string) {}

// end records when a lease ended the process, and why.
type end struct {
	after  time.Duration
	reason string
	times  int
}

// ended notes it.
type ended struct {
	mu   sync.Mutex
	last end
}

func (e *ended) get() end {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.last
}

func leaseOn(inner resourcelock.Interface) (*leaderLease, *ended) {
	begin, e := time.Now(), &ended{}

	return &leaderLease{Interface: inner, lost: func(reason string) {
		e.mu.Lock()
		defer e.mu.Unlock()

		e.last = end{after: time.Since(begin), reason: reason, times: e.last.times + 1}
	}}, e
}

func TestLeaseEndsTheProcess(t *testing.T) {
	renewal := resourcelock.LeaderElectionRecord{HolderIdentity: ours}
	release := resourcelock.LeaderElectionRecord{}
	update := func(t *testing.T, l *leaderLease, r resourcelock.LeaderElectionRecord) {
		t.Helper()

		if err := l.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	for _, tc := range []struct {
		name  string
		do    func(*testing.T, *leaderLease, *record)
		after time.Duration // 0: it does not
		says  string
	}{
		{"never held", func(t *testing.T, l *leaderLease, r *record) {
			r.holder = theirs
			_, _, _ = l.Get(t.Context())
		}, 0, ""},
		{"not renewed", func(t *testing.T, l *leaderLease, _ *record) { update(t, l, renewal) }, 13 * time.Second, "could not be renewed for 13s"},
		{"made, not renewed", func(t *testing.T, l *leaderLease, _ *record) {
			if err := l.Create(t.Context(), renewal); err != nil {
				t.Fatal(err)
			}
		}, 13 * time.Second, "could not be renewed"},
		{"renewed once", func(t *testing.T, l *leaderLease, _ *record) {
			update(t, l, renewal)
			time.Sleep(10 * time.Second)
			update(t, l, renewal)
		}, 23 * time.Second, "could not be renewed"},
		{"a renewal that fails does not count", func(t *testing.T, l *leaderLease, r *record) {
			update(t, l, renewal)
			time.Sleep(10 * time.Second)

			r.err = errors.New("conflict")
			if err := l.Update(t.Context(), renewal); err == nil {
				t.Error("no error")
			}
		}, 13 * time.Second, "could not be renewed"},
		{"given back", func(t *testing.T, l *leaderLease, _ *record) {
			update(t, l, renewal)
			update(t, l, release)
		}, 0, ""},
		{"given back, and another's then", func(t *testing.T, l *leaderLease, r *record) {
			update(t, l, renewal)
			update(t, l, release)

			r.holder = theirs
			_, _, _ = l.Get(t.Context())
		}, 0, ""},
		{"another's although held", func(t *testing.T, l *leaderLease, r *record) {
			update(t, l, renewal)
			time.Sleep(time.Second)

			r.holder = theirs
			_, _, _ = l.Get(t.Context())
		}, time.Second, "apps/omni-controller is held by them"},
		{"nobody's although held", func(t *testing.T, l *leaderLease, r *record) {
			update(t, l, renewal)

			r.holder = ""
			_, _, _ = l.Get(t.Context())

			update(t, l, release)
		}, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &record{holder: ours}
				l, ended := leaseOn(inner)
				tc.do(t, l, inner)

				// The real process would have ended here, and its watchdog with it.
				if ended.get().times > 0 {
					l.wrote(time.Now(), release, nil)
				}

				time.Sleep(time.Minute)

				end := ended.get()
				if want := tc.after > 0; (end.times > 0) != want || end.after != tc.after || !strings.Contains(end.reason, tc.says) {
					t.Errorf("ended %d times after %s: %s, want after %s", end.times, end.after, end.reason, tc.after)
				}
			})
		})
	}
}

// TestLeaderEndsBeforeTheLease runs the library itself with a hub that stops answering. The library alone would give
// up when another controller may lead already.
func TestLeaderEndsBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &record{holder: ours}
		l, ended := leaseOn(inner)

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var stopped atomic.Int64

		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: l, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: leaseRetry, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {},
				OnStoppedLeading: func() { stopped.Store(time.Now().UnixNano()) },
			},
		})
		if err != nil {
			t.Fatal(err)
		}

		begin := time.Now()

		go elector.Run(ctx)

		time.Sleep(time.Minute + time.Second)

		end := ended.get()
		if end.times > 0 || !elector.IsLeader() {
			t.Fatalf("with a hub that answers: leads %t, %+v", elector.IsLeader(), end)
		}

		inner.hangs.Store(true)

		time.Sleep(time.Minute)

		// The last renewal was at the end of the first minute.
		end = ended.get()
		if end.times != 1 || end.after < time.Minute+leaseDuration-leaseMargin-leaseRetry || end.after > time.Minute+leaseDuration-leaseMargin {
			t.Errorf("%+v", end)
		}

		if late := time.Unix(0, stopped.Load()).Sub(begin); late < time.Minute+leaseDuration {
			t.Errorf("the library stopped after %s by itself: the watchdog is not needed any more", late)
		}
	})
}

func TestNewLease(t *testing.T) {
	var agent, path string

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent, path = r.UserAgent(), r.URL.Path
		writeStatus(w, http.StatusNotFound, "NotFound")
	}))
	t.Cleanup(server.Close)

	first, inner, err := newLeaderLease(&rest.Config{Host: server.URL, UserAgent: "omni-controller"}, "apps")
	if err != nil {
		t.Fatal(err)
	}

	second, _, err := newLeaderLease(&rest.Config{Host: server.URL}, "apps")
	if err != nil {
		t.Fatal(err)
	}

	if first.Identity() == second.Identity() || first.Identity() != inner.Identity() || first.Describe() != "apps/omni-controller" {
		t.Errorf("%s, %s, %s", first.Identity(), second.Identity(), first.Describe())
	}

	if _, _, err := first.Get(t.Context()); err == nil {
		t.Error("a lease that is not there was found")
	}

	if path != "/apis/coordination.k8s.io/v1/namespaces/apps/leases/omni-controller" || agent != "omni-controller" {
		t.Errorf("%s asked for %s", agent, path)
	}
}

func TestExplainLost(t *testing.T) {
	if err := explainLost(nil); err != nil {
		t.Error(err)
	}

	other := errors.New("failed to start caches")
	if err := explainLost(other); err != other { // the very same
		t.Error(err)
	}

	err := explainLost(errors.New("leader election lost"))
	if err == nil || !strings.Contains(err.Error(), "could not be renewed for 10s") || !strings.Contains(err.Error(), "kube-apiserver did not answer") {
		t.Error(err)
	}
}
