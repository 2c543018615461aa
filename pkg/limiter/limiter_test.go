package limiter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTryAcquire(t *testing.T) {
	var (
		slow  bool
		woken []string
		held  []func()
	)

	l := New(Limits[string]{PerKey: 4, Slow: func(string) bool { return slow }})
	enter := func(name string) bool {
		release, ok := l.TryAcquire("omni", 1, Waiter{Name: name, Wake: func() { woken = append(woken, name) }})
		if ok {
			held = append(held, release)
		}

		return ok
	}
	release := func() {
		held[0]()
		held[0]() // once more does no harm
		held = held[1:]
	}

	for i := range 6 {
		if entered := enter(fmt.Sprintf("c%d", i)); entered != (i < 4) {
			t.Errorf("c%d: %v", i, entered)
		}
	}

	if enter("c4") {
		t.Error("c4 came in")
	}

	if _, ok := l.TryAcquire("other", 1, Waiter{}); !ok {
		t.Error("another key has no slot")
	}

	release()

	if diff := cmp.Diff([]string{"c4", "c5"}, woken); diff != "" {
		t.Errorf("the longest waiting first, and each once: %s", diff)
	}

	if !enter("c4") || enter("c5") {
		t.Error("one slot was free")
	}

	// Of a slow Omni fewer may wait; who has one already stays.
	slow = true

	release()
	release()

	if enter("c6") {
		t.Error("a third run waits for a slow Omni")
	}

	release()

	if !enter("c6") || enter("c7") {
		t.Error("two runs may wait for a slow Omni")
	}
}

// Those that wait are counted until they are woken, or have what they waited for, and not those that are gone.
func TestWaiting(t *testing.T) {
	l := New(Limits[string]{PerKey: 1})
	enter := func(key, name, kind string) func() {
		release, _ := l.TryAcquire(key, 1, Waiter{Name: name, Kind: kind, Wake: func() {}})

		return release
	}
	want := func(when string, syncs, releases int) {
		t.Helper()

		if gotSyncs, gotReleases := l.Waiting("sync"), l.Waiting("release"); gotSyncs != syncs || gotReleases != releases {
			t.Errorf("%s: %d syncs and %d releases wait, want %d and %d", when, gotSyncs, gotReleases, syncs, releases)
		}
	}

	first, other := enter("omni", "a", "sync"), enter("else", "x", "sync")
	want("nobody is refused", 0, 0)

	for range 2 { // who tries again waits once
		enter("omni", "b", "sync")
		enter("omni", "c", "release")
		enter("omni", "d", "sync")
		enter("else", "y", "sync")
	}

	want("four are refused", 3, 1)

	first() // wakes b; no slot is taken
	want("the slot is free", 1, 0)

	second := enter("omni", "c", "release") // by itself: nobody has woken it
	want("one of them has the slot", 2, 0)

	second() // wakes d
	other()  // wakes y
	want("all are woken", 0, 0)

	if len(l.keys) != 0 {
		t.Errorf("%d keys are kept", len(l.keys))
	}
}

func TestTryAcquireWithoutABound(t *testing.T) {
	l := New(Limits[string]{Slow: func(string) bool { return true }})

	for range 100 {
		release, ok := l.TryAcquire("omni", 1, Waiter{Name: "c", Wake: func() { t.Error("nobody waits") }})
		if !ok {
			t.Fatal("refused")
		}

		defer release()
	}
}

// One slot is one slot, however slow the Omni is.
func TestOneSlot(t *testing.T) {
	l := New(Limits[string]{PerKey: 1, Slow: func(string) bool { return true }})
	enter := func(name string) (func(), bool) {
		return l.TryAcquire("omni", 1, Waiter{Name: name, Wake: func() {}})
	}

	release, ok := enter("a")
	if _, second := enter("b"); !ok || second {
		t.Fatal("not one slot")
	}

	release()

	if release, ok = enter("b"); !ok {
		t.Fatal("no slot")
	}

	release()

	if len(l.keys) != 0 {
		t.Errorf("%d keys are kept", len(l.keys))
	}
}
