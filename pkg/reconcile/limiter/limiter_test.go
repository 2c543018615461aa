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
