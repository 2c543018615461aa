package limiter

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAKeyLeavesRoomForOthers(t *testing.T) {
	l := New(Limits[string]{PerKey: 1, Total: 2})
	hold, begun, ended := make(chan struct{}), make(chan string, 3), make(chan error, 3)

	run := func(ctx context.Context, key string) {
		go func() {
			release, err := l.Acquire(ctx, key, 1)
			if err == nil {
				begun <- key
				<-hold
				release()
				release()
			}

			ended <- err
		}()
	}

	run(t.Context(), "a")

	if key := <-begun; key != "a" {
		t.Fatal(key)
	}

	ctx, cancel := context.WithCancel(t.Context())
	run(ctx, "a") // waits
	run(t.Context(), "b")

	if key := <-begun; key != "b" {
		t.Fatalf("%s began, although its key has no slot", key)
	}

	cancel()

	if <-ended == nil {
		t.Error("who gave up got a slot")
	}

	close(hold)

	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("who had a slot was refused: %v", err)
		}
	}

	if len(l.keys) != 0 {
		t.Errorf("%d keys are kept", len(l.keys))
	}
}

// TestOrder: who waits longest is the first, and one whose key is full holds up nobody behind it.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits[string]{PerKey: 1, Total: 2})
		begun := make(chan string, 9)

		acquire := func(name, key string) chan func() {
			got := make(chan func(), 1)

			go func() {
				release, err := l.Acquire(t.Context(), key, 1)
				if err != nil {
					t.Error(err)
				}

				begun <- name
				got <- release
			}()

			synctest.Wait()

			return got
		}

		first, second := acquire("a1", "a"), acquire("b1", "b")
		third, fourth, fifth := acquire("a2", "a"), acquire("c1", "c"), acquire("d1", "d")

		(<-second)() // b's slot is c's: the key of a2 is full
		synctest.Wait()
		(<-first)() // a2 waits longer than d1
		synctest.Wait()
		(<-fourth)()
		synctest.Wait()

		for _, want := range []string{"a1", "b1", "c1", "a2", "d1"} {
			if got := <-begun; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}

		(<-third)()
		(<-fifth)()

		if len(l.keys) != 0 {
			t.Errorf("%d keys are kept", len(l.keys))
		}
	})
}

// Who comes first is served before those that waited already, and behind others that come first.
func TestAcquireFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits[string]{Total: 1})
		begun := make(chan string, 4)
		hold, ok := l.TryAcquire("x", 1, Waiter{})

		for _, one := range []struct {
			name    string
			acquire func(context.Context, string, int64) (func(), error)
		}{{"a", l.Acquire}, {"b", l.AcquireFirst}, {"c", l.Acquire}, {"d", l.AcquireFirst}} {
			go func() {
				release, err := one.acquire(t.Context(), one.name, 1)
				if err != nil {
					t.Error(err)

					return
				}

				begun <- one.name
				release()
			}()

			synctest.Wait()
		}

		if !ok || len(begun) != 0 {
			t.Fatal("more than one slot was free")
		}

		hold()

		for _, want := range []string{"b", "d", "a", "c"} {
			if got := <-begun; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// Who gives up is never in the way, also if it got a slot at the same moment.
func TestGivingUp(t *testing.T) {
	l := New(Limits[string]{Total: 1})
	release, err := l.Acquire(t.Context(), "a", 1)

	if err != nil {
		t.Fatal(err)
	}

	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})

		go func() {
			defer close(ended)

			if release, err := l.Acquire(ctx, "b", 1); err == nil {
				release()
			}
		}()

		go cancel()

		release()
		<-ended

		if release, err = l.Acquire(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
	}

	release()

	if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 {
		t.Errorf("%d slots, %d requests and %d keys are kept", taken, waiting, len(l.keys))
	}
}

// Slots may be bytes: a key leaves room for others, and a large request does not hold up small ones.
func TestManySlots(t *testing.T) {
	l := New(Limits[string]{PerKey: 8, Total: 12})
	first, ok := l.TryAcquire("a", 6, Waiter{})

	if _, more := l.TryAcquire("a", 3, Waiter{}); !ok || more {
		t.Error("one key has more than its share")
	}

	// More than may be at all is what may be.
	large := make(chan func())

	go func() {
		release, err := l.Acquire(context.Background(), "b", 100)
		if err != nil {
			t.Error(err)
		}

		large <- release
	}()

	for waiting := 0; waiting == 0; _, waiting = l.Load() {
		runtime.Gosched()
	}

	second, err := l.Acquire(t.Context(), "c", 4)
	if err != nil {
		t.Fatal(err)
	}

	if _, ok := l.TryAcquire("d", 3, Waiter{}); ok {
		t.Error("there is more than fits")
	}

	if nothing, err := l.Acquire(t.Context(), "d", 0); err != nil {
		t.Error(err)
	} else {
		nothing()
	}

	first()
	first() // gives nothing back

	(<-large)()
	second()

	if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 {
		t.Errorf("%d slots, %d requests and %d keys are kept", taken, waiting, len(l.keys))
	}
}

// Many at the same time, some of which give up, get and give back all of it.
func TestManyCallers(t *testing.T) {
	l := New(Limits[int]{PerKey: 8, Total: 12})

	var all sync.WaitGroup

	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()

			release, err := l.Acquire(ctx, i%5, int64(i%9))
			if err != nil {
				return
			}

			if taken, _ := l.Load(); taken > 12 {
				t.Errorf("%d slots are taken", taken)
			}

			time.Sleep(time.Millisecond)
			release()
		})
	}

	all.Wait()

	if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 {
		t.Errorf("%d slots, %d requests and %d keys are kept", taken, waiting, len(l.keys))
	}
}

// A tenant has as many slots as are left for all others: each that comes later finds some.
func TestATenantLeavesRoomForOthers(t *testing.T) {
	l := New(Limits[string]{PerKey: 3, Total: 16, Tenant: func(key string) string { return key[:1] }})
	take := func(tenant string) (releases []func()) {
		for key := range 10 {
			for {
				release, ok := l.TryAcquire(fmt.Sprint(tenant, key), 1, Waiter{})
				if !ok {
					break
				}

				releases = append(releases, release)
			}
		}

		return releases
	}

	var all []func()

	for i, want := range []int{8, 4, 2, 1, 1, 0} {
		got := take(string(rune('a' + i)))
		if all = append(all, got...); len(got) != want {
			t.Errorf("tenant %d has %d slots, want %d", i, len(got), want)
		}
	}

	// Who waits is served as soon as its tenant may have more.
	granted := make(chan func())

	go func() {
		release, err := l.Acquire(t.Context(), "a9", 1)
		if err != nil {
			t.Error(err)
		}

		granted <- release
	}()

	for waiting := 0; waiting == 0; _, waiting = l.Load() {
		runtime.Gosched()
	}

	for _, release := range all {
		release()
	}

	(<-granted)()

	if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 || len(l.tenants) != 0 {
		t.Errorf("%d slots, %d requests, %d keys and %d tenants are kept", taken, waiting, len(l.keys), len(l.tenants))
	}
}

// Tenants share the slots of what they all ask, and each leaves room for the others elsewhere.
func TestTenantsShareAResource(t *testing.T) {
	l := New(Limits[string]{
		PerKey: 2, Total: 8, Tenant: func(key string) string { return key[:1] }, Resource: func(key string) string { return key[1:] },
	})

	var (
		all   []func()
		woken []string
	)

	for _, step := range []struct {
		key string
		ok  bool
	}{
		{"a1", true}, {"b1", true},
		{"a1", false}, {"c1", false}, // the resource has no more
		{"a2", true}, {"a2", true}, {"a3", true},
		{"a3", false}, // a has as many as are left
		{"b3", true},
		{"c3", false}, {"c4", true},
	} {
		release, ok := l.TryAcquire(step.key, 1, Waiter{Name: step.key, Wake: func() { woken = append(woken, step.key) }})
		if ok != step.ok {
			t.Errorf("%s: %v", step.key, ok)
		}

		if ok {
			all = append(all, release)
		}
	}

	all[0]()

	if diff := cmp.Diff([]string{"a1", "c1"}, woken); diff != "" {
		t.Errorf("who waits for the resource is woken, whoever it was that had it: %s", diff)
	}

	for _, release := range all {
		release()
	}

	if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 || len(l.tenants) != 0 {
		t.Errorf("%d slots, %d requests, %d keys and %d tenants are kept", taken, waiting, len(l.keys), len(l.tenants))
	}
}

// Who is turned away by Claim has its slot when its turn comes, and it goes to the next if it is not fetched.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu    sync.Mutex // Wake is called by whoever gives a slot back, and by the clock
			woken []string
		)

		l := New(Limits[string]{PerKey: 1, Total: 2})
		claim := func(name, key string) (func(), bool) {
			return l.Claim(key, Waiter{Name: name, Wake: func() {
				mu.Lock()
				defer mu.Unlock()

				woken = append(woken, name)
			}})
		}

		hold, ok := claim("first", "a")
		if !ok {
			t.Fatal("no slot is free")
		}

		for _, name := range []string{"second", "third", "second", "fourth", "leaves"} {
			if _, ok := claim(name, "a"); ok {
				t.Errorf("%s has a slot", name)
			}
		}

		l.Exit("leaves")
		hold()

		if _, ok := claim("third", "a"); ok {
			t.Error("third has the slot of second")
		}

		held, ok := claim("second", "a")
		if !ok {
			t.Fatal("second has lost its slot")
		}

		if other, ok := claim("other", "b"); !ok {
			t.Error("another key has no slot")
		} else {
			other()
		}

		held()
		time.Sleep(2 * claimTime) // third does not come, and fourth does not either
		synctest.Wait()

		if diff := cmp.Diff([]string{"second", "third", "fourth"}, woken); diff != "" {
			t.Error(diff)
		}

		if taken, waiting := l.Load(); taken != 0 || waiting != 0 || len(l.keys) != 0 || len(l.claims) != 0 {
			t.Errorf("%d slots, %d requests, %d keys and %d claims are kept", taken, waiting, len(l.keys), len(l.claims))
		}
	})
}
