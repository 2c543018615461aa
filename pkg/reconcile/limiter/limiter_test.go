package limiter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimiter(t *testing.T) {
	var (
		slow  bool
		woken []string
	)

	s := New(4, func() bool { return slow }, func(cluster string) { woken = append(woken, cluster) })

	for i := range 6 {
		if entered := s.Enter(fmt.Sprintf("c%d", i)); entered != (i < 4) {
			t.Errorf("c%d: %v", i, entered)
		}
	}

	if s.Enter("c4") {
		t.Error("c4 came in")
	}

	s.Leave()

	if diff := cmp.Diff([]string{"c4", "c5"}, woken); diff != "" {
		t.Errorf("the longest waiting first, and each once: %s", diff)
	}

	if !s.Enter("c4") || s.Enter("c5") {
		t.Error("one slot was free")
	}

	// Of a slow Omni fewer may wait; who has one already stays.
	slow = true

	s.Leave()
	s.Leave()

	if s.Enter("c6") {
		t.Error("a third run waits for a slow Omni")
	}

	s.Leave()

	if !s.Enter("c6") || s.Enter("c7") {
		t.Error("two runs may wait for a slow Omni")
	}
}

func TestLimiterWithoutABound(t *testing.T) {
	s := New(0, func() bool { return true }, func(string) { t.Error("nobody waits") })

	for range 100 {
		if !s.Enter("c") {
			t.Fatal("refused")
		}
	}

	s.Leave()
}

// One slot is one slot, however slow the Omni is.
func TestOneSlot(t *testing.T) {
	s := New(1, func() bool { return true }, func(string) {})

	if !s.Enter("a") || s.Enter("b") {
		t.Error("not one slot")
	}

	s.Leave()

	if !s.Enter("b") {
		t.Error("no slot")
	}
}
