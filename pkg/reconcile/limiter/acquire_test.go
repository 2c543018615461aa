package limiter

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestAKeyLeavesRoomForOthers(t *testing.T) {
	l := New(Limits[string]{PerKey: 1, Total: 2})
	hold, begun, ended := make(chan struct{}), make(chan string, 3), make(chan error, 3)

	run := func(ctx context.Context, key string) {
		go func() {
			release, err := l.Acquire(ctx, key)
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

	if <-ended != nil || <-ended != nil {
		t.Error("who had a slot was refused")
	}

	if !l.Idle() {
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
				release, err := l.Acquire(t.Context(), key)
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

		if !l.Idle() {
			t.Errorf("%d keys are kept", len(l.keys))
		}
	})
}

// Who gives up is never in the way, also if it got a slot at the same moment.
func TestGivingUp(t *testing.T) {
	l := New(Limits[string]{Total: 1})
	release, err := l.Acquire(t.Context(), "a")

	if err != nil {
		t.Fatal(err)
	}

	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})

		go func() {
			defer close(ended)

			if release, err := l.Acquire(ctx, "b"); err == nil {
				release()
			}
		}()

		go cancel()

		release()
		<-ended

		if release, err = l.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}

	release()

	if !l.Idle() {
		t.Errorf("%d keys, %d requests are kept", len(l.keys), len(l.queue))
	}
}
