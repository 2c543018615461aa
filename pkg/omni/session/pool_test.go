package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// opener replaces dialling: it counts, and can block or fail.
type opener struct {
	t      *testing.T
	mu     sync.Mutex
	opened []string
	fail   error
	hold   map[string]chan struct{} // by endpoint; filled before the first open
	source *omnitest.FakeOmni
}

func newOpener(t *testing.T) *opener {
	return &opener{t: t, hold: map[string]chan struct{}{}, source: omnitest.NewFakeOmni()}
}

func (o *opener) open(ctx context.Context, config Config, copied mirror.Options) (*Session, error) {
	o.mu.Lock()
	o.opened = append(o.opened, config.Endpoint)
	held, fail := o.hold[config.Endpoint], o.fail
	o.mu.Unlock()

	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}

	if fail != nil {
		return nil, fail
	}

	return New(o.source, mirror.Start(ctx, o.source, copied)), nil
}

func (o *opener) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()

	return len(o.opened)
}

func mustAcquire(t *testing.T, p *Pool, uid, version string, config Config) *Lease {
	t.Helper()

	lease, err := p.Acquire(t.Context(), Identity{UID: uid, SecretUID: version}, config)
	if err != nil {
		t.Fatal(err)
	}

	return lease
}

// awaitStop waits until a session's mirror has ended.
func awaitStop(t *testing.T, s *Session) {
	t.Helper()

	done := make(chan struct{})

	go func() {
		s.Mirror().Wait()
		close(done)
	}()

	await.Receive(t, "the end of the mirror", done)
}

func TestPoolSharesAndReplaces(t *testing.T) {
	o := newOpener(t)
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	base := Config{Endpoint: "https://a"}
	first := mustAcquire(t, p, "uid-1", "1", base)
	second := mustAcquire(t, p, "uid-1", "1", base)

	if first.Session != second.Session || o.count() != 1 {
		t.Fatal("the session is not shared")
	}

	if got, ok := p.Get("uid-1"); !ok || got.Session != first.Session {
		t.Error("Get finds something else")
	} else {
		got.Release()
	}

	if _, ok := p.Get("uid-2"); ok {
		t.Error("Get finds what nobody opened")
	}

	// Each of these changes requires another session.
	last := first.Session

	for name, change := range map[string]func() *Lease{
		"Secret":   func() *Lease { return mustAcquire(t, p, "uid-1", "2", base) },
		"endpoint": func() *Lease { return mustAcquire(t, p, "uid-1", "2", Config{Endpoint: "https://b"}) },
		"CA": func() *Lease {
			return mustAcquire(t, p, "uid-1", "2", Config{Endpoint: "https://b", CABundle: []byte("x")})
		},
		"insecure": func() *Lease {
			return mustAcquire(t, p, "uid-1", "2", Config{Endpoint: "https://b", InsecureSkipTLSVerify: true})
		},
		"key": func() *Lease { return mustAcquire(t, p, "uid-1", "2", Config{Endpoint: "https://b", Key: testKey(t)}) },
	} {
		lease := change()
		if lease.Session == last {
			t.Errorf("another %s gives the same session", name)
		}

		last = lease.Session
		lease.Release()
	}
}

func TestPoolClosesAReplacedSessionAfterItsLastUse(t *testing.T) {
	o := newOpener(t)
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	old := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	also := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	session := old.Session

	await.Until(t, "synced", session.mirror.Synced)

	replacement := mustAcquire(t, p, "uid-1", "2", Config{Endpoint: "https://a"})
	defer replacement.Release()

	old.Release()
	old.Release() // twice does no harm

	source := o.source
	omnitest.MustCreate(t, source, omnitest.ClusterNamed("while-in-use"))
	await.Until(t, "the old mirror still works", func() bool {
		_, err := session.Copy().Get(t.Context(), omnitest.ClusterNamed("while-in-use").Metadata())

		return err == nil
	})

	also.Release()

	awaitStop(t, session) // it was replaced

	if got, ok := p.Get("uid-1"); !ok || got.Session != replacement.Session {
		t.Error("the replacement is gone")
	}
}

// TestPoolMakesRoomForAReplacement has too little memory for a session that was replaced, its successor and a neighbour: the
// replaced one goes, although its lease is not released, also if it had only begun when it was replaced.
func TestPoolMakesRoomForAReplacement(t *testing.T) {
	for name, late := range map[string]bool{"open": false, "being opened": true} {
		t.Run(name, func(t *testing.T) {
			o, held := newOpener(t), make(chan struct{})
			o.hold["old"] = held
			accounts := map[string]chan *bounds.Account{}

			for _, endpoint := range []string{"neighbour", "old", "new"} {
				accounts[endpoint] = make(chan *bounds.Account, 1)
			}

			p := NewPool(t.Context(), PoolOptions{
				Limits: bounds.Limits{Memory: 90, TotalMemory: 100},
				Open: func(ctx context.Context, config Config, copied mirror.Options) (*Session, error) {
					opened, err := o.open(ctx, config, mirror.Options{})
					accounts[config.Endpoint] <- copied.Open(func(error) {})

					return opened, err
				},
			})

			defer mustAcquire(t, p, "neighbour", "1", Config{Endpoint: "neighbour"}).Release()

			leases := make(chan *Lease, 1)

			go func() {
				lease, _ := p.Acquire(t.Context(), Identity{UID: "moved", SecretUID: "1"}, Config{Endpoint: "old"})
				leases <- lease
			}()

			await.Until(t, "the session is being opened", func() bool { return o.count() == 2 })

			if !late {
				close(held)
				await.Until(t, "the session is open", func() bool { return len(leases) == 1 })
			}

			defer mustAcquire(t, p, "moved", "1", Config{Endpoint: "new"}).Release()

			if late {
				close(held)
			}

			neighbour, old, successor := <-accounts["neighbour"], <-accounts["old"], <-accounts["new"]
			defer (<-leases).Release()

			for _, kept := range []struct {
				by    *bounds.Account
				bytes int64
			}{{neighbour, 60}, {old, 20}, {successor, 30}, {neighbour, 1}, {successor, 1}} {
				if err := kept.by.Charge(1, kept.bytes); err != nil {
					t.Errorf("%d bytes: %v", kept.bytes, err)
				}
			}

			if err := old.Charge(1, 1); !errors.Is(err, omni.ErrClosed) {
				t.Errorf("the replaced session: %v", err)
			}
		})
	}
}

func TestPoolForgetsAndCloses(t *testing.T) {
	o := newOpener(t)
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	lease := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	p.Forget("uid-1")
	p.Forget("uid-1")

	if _, ok := p.Get("uid-1"); ok {
		t.Error("forgotten, but there")
	}

	session := lease.Session
	lease.Release()

	awaitStop(t, session) // it was forgotten

	mustAcquire(t, p, "uid-2", "1", Config{Endpoint: "https://a"}).Release()
	p.Close()

	if _, err := p.Acquire(t.Context(), Identity{UID: "uid-2"}, Config{}); !errors.Is(err, omni.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestPoolDoesNotRememberFailures(t *testing.T) {
	o := newOpener(t)
	o.fail = omni.ErrKeyExpired
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	for want := 1; want <= 2; want++ {
		_, err := p.Acquire(t.Context(), Identity{UID: "uid-1"}, Config{})
		if !errors.Is(err, omni.ErrKeyExpired) || o.count() != want {
			t.Errorf("attempt %d: %v", want, err)
		}
	}

	o.fail = nil
	mustAcquire(t, p, "uid-1", "", Config{}).Release()
}

func TestPoolOpensOnceForEverybody(t *testing.T) {
	o := newOpener(t)
	o.hold["https://a"] = make(chan struct{})
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	var group sync.WaitGroup

	sessions := make([]*Session, 8)

	for i := range sessions {
		group.Go(func() { sessions[i] = mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"}).Session })
	}

	// A caller that gives up does not make the others fail.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	if _, err := p.Acquire(ctx, Identity{UID: "uid-1", SecretUID: "1"}, Config{Endpoint: "https://a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("gave up: %v", err)
	}

	close(o.hold["https://a"])
	group.Wait()

	for _, session := range sessions {
		if session == nil || session != sessions[0] {
			t.Fatal("several sessions")
		}
	}

	if o.count() != 1 {
		t.Errorf("opened %d times", o.count())
	}
}

func TestPoolSickConnectionsDoNotBlockOthers(t *testing.T) {
	o := newOpener(t)
	for i := range 10 {
		o.hold[fmt.Sprintf("https://sick-%d", i)] = make(chan struct{})
	}

	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	for endpoint := range o.hold {
		go func() {
			if lease, err := p.Acquire(t.Context(), Identity{UID: endpoint}, Config{Endpoint: endpoint}); err == nil {
				lease.Release()
			}
		}()
	}

	await.Until(t, "all hang", func() bool { return o.count() == 10 })

	// The unhealthy ones hang until the end.
	mustAcquire(t, p, "well", "1", Config{Endpoint: "https://well"}).Release()
	p.Forget("https://sick-3")

	if _, ok := p.Get("https://sick-4"); ok {
		t.Error("Get finds a session that is not open yet")
	}
}

func TestPoolForgetsDuringDialling(t *testing.T) {
	o := newOpener(t)
	o.hold["https://a"] = make(chan struct{})
	p := NewPool(t.Context(), PoolOptions{Open: o.open})

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)

	go func() {
		_, err := p.Acquire(ctx, Identity{UID: "uid-1"}, Config{Endpoint: "https://a"})
		failed <- err
	}()

	await.Until(t, "it dials", func() bool { return o.count() == 1 })
	p.Forget("uid-1")
	cancel()

	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestPoolTellsWhoseChangeItIs(t *testing.T) {
	o := newOpener(t)

	var (
		mu      sync.Mutex
		changed []string
		healthy = map[string]int{}
	)

	p := NewPool(t.Context(), PoolOptions{
		Open: o.open,
		ClusterChanged: func(uid, cluster string) {
			mu.Lock()
			defer mu.Unlock()

			changed = append(changed, uid+"/"+cluster)
		},
		HealthChanged: func(uid string) {
			mu.Lock()
			defer mu.Unlock()

			healthy[uid]++
		},
	})

	lease := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	defer lease.Release()

	await.Until(t, "synced", func() bool { return lease.Health().Synced })
	omnitest.MustCreate(t, o.source, omnitest.ClusterNamed("demo"))

	await.Until(t, "told", func() bool {
		mu.Lock()
		defer mu.Unlock()

		return len(changed) == 1 && changed[0] == "uid-1/demo" && healthy["uid-1"] >= 2
	})
}

// TestPoolKeepsAFailureForTheNextCaller checks that HealthChanged is called at the end of an attempt whose caller gave
// up, and that the next Acquire returns its failure.
func TestPoolKeepsAFailureForTheNextCaller(t *testing.T) {
	o := newOpener(t)
	o.hold["https://a"], o.fail = make(chan struct{}), omni.ErrKeyExpired

	told := make(chan string, 10)
	p := NewPool(t.Context(), PoolOptions{Open: o.open, HealthChanged: func(uid string) { told <- uid }})

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	if _, err := p.Acquire(ctx, Identity{UID: "uid-1"}, Config{Endpoint: "https://a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}

	close(o.hold["https://a"])

	if uid := <-told; uid != "uid-1" {
		t.Error(uid)
	}

	if _, found := p.Get("uid-1"); found {
		t.Error("a session that was never open")
	}

	if _, err := p.Acquire(t.Context(), Identity{UID: "uid-1"}, Config{Endpoint: "https://a"}); !errors.Is(err, omni.ErrKeyExpired) || o.count() != 1 {
		t.Errorf("after %d attempts: %v", o.count(), err)
	}

	if _, err := p.Acquire(t.Context(), Identity{UID: "uid-1"}, Config{Endpoint: "https://a"}); !errors.Is(err, omni.ErrKeyExpired) || o.count() != 2 {
		t.Errorf("after %d attempts: %v", o.count(), err)
	}
}

func TestPoolSlots(t *testing.T) {
	woken := make(chan string, 10)
	p := NewPool(t.Context(), PoolOptions{
		Open: newOpener(t).open, Runs: 1, ClusterChanged: func(uid, cluster string) { woken <- uid + "/" + cluster },
	})

	first := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	second := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	other := mustAcquire(t, p, "uid-2", "1", Config{Endpoint: "https://b"})

	defer other.Release()

	//nolint:staticcheck // who is in may enter again
	if !first.Enter("one") || !first.Enter("one") || second.Enter("two") || !other.Enter("three") {
		t.Error("one slot for each connection")
	}

	second.Release()
	first.Release()
	first.Release()

	if got := <-woken; got != "uid-1/two" {
		t.Error(got)
	}

	again := mustAcquire(t, p, "uid-1", "1", Config{Endpoint: "https://a"})
	defer again.Release()

	if !again.Enter("two") {
		t.Error("the slot was not given back")
	}
}
