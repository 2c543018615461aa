package session

import (
	"errors"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestGrace checks from when the graces count: from the attempt that is under way or succeeded, if it began after the first
// look of the process, and never from one that failed.
func TestGrace(t *testing.T) {
	const uid, endpoint = "uid-1", "https://a"

	now := time.Now()
	longAgo, lately := now.Add(-time.Hour), now.Add(-time.Second)

	acquire := func(t *testing.T, o *opener, p *Pool) error {
		t.Helper()

		lease, err := p.Acquire(t.Context(), Identity{UID: uid}, Config{Endpoint: endpoint})
		if err == nil {
			lease.Release()
		}

		return err
	}

	for name, test := range map[string]struct {
		set    func(*testing.T, *opener, *Pool)
		looked time.Time
		counts bool // the grace of a connection that is shown as Ready is not over
	}{
		"nobody opens one":        {func(*testing.T, *opener, *Pool) {}, longAgo, false},
		"the process began":       {func(*testing.T, *opener, *Pool) {}, lately, true},
		"it is another's session": {func(t *testing.T, _ *opener, p *Pool) { mustAcquire(t, p, "uid-2", "", Config{Endpoint: endpoint}) }, longAgo, false},
		"it is being dialled": {func(t *testing.T, o *opener, p *Pool) {
			o.hold[endpoint] = make(chan struct{})
			go func() { _ = acquire(t, o, p) }()
			await.Until(t, "it dials", func() bool { return o.count() == 1 })
		}, longAgo, true},
		"it is open": {func(t *testing.T, o *opener, p *Pool) { mustAcquire(t, p, uid, "", Config{Endpoint: endpoint}) }, longAgo, true},
		"it could not be opened": {func(t *testing.T, o *opener, p *Pool) {
			o.fail = omni.ErrKeyExpired
			if err := acquire(t, o, p); !errors.Is(err, omni.ErrKeyExpired) {
				t.Fatal(err)
			}
		}, longAgo, false},
		"it was forgotten": {func(t *testing.T, o *opener, p *Pool) {
			mustAcquire(t, p, uid, "", Config{Endpoint: endpoint}).Release()
			p.Forget(uid)
		}, longAgo, false},
		"Omni sent too much": {func(t *testing.T, o *opener, p *Pool) {
			mustAcquire(t, p, uid, "", Config{Endpoint: endpoint}).Release()
			p.refuse(uid, p.entries[uid], omni.ErrTooMuchData)
		}, longAgo, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpener(t)
			p := NewPool(t.Context(), PoolOptions{Open: o.open})
			test.set(t, o, p)

			if got := p.UserGrace(uid, true, test.looked, now) > 0; got != test.counts {
				t.Errorf("users: %t", got)
			}

			if got := p.ContentsGrace(uid, test.looked, now) > 0; got != test.counts {
				t.Errorf("the connection: %t", got)
			}

			// What its controller shows as not Ready is not hidden by the next attempt.
			if got := p.UserGrace(uid, false, test.looked, now) > 0; got != test.looked.Equal(lately) {
				t.Errorf("users of a connection that is not Ready: %t", got)
			}
		})
	}
}

// TestGracesEnd checks that a connection shows before its users that its contents do not come.
func TestGracesEnd(t *testing.T) {
	p, looked := NewPool(t.Context(), PoolOptions{}), time.Now()

	if left := p.UserGrace("uid-1", true, looked, looked.Add(ContentsGrace)); left <= 0 {
		t.Errorf("users: %s", left)
	}

	for name, left := range map[string]time.Duration{
		"the connection":                        p.ContentsGrace("uid-1", looked, looked.Add(ContentsGrace)),
		"users":                                 p.UserGrace("uid-1", true, looked, looked.Add(ReadyGrace)),
		"users of a connection that is unready": p.UserGrace("uid-1", false, looked, looked.Add(StartGrace)),
	} {
		if left > 0 {
			t.Errorf("%s: %s", name, left)
		}
	}
}
