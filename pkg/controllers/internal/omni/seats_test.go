package omni

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeats(t *testing.T) {
	var (
		slow  bool
		woken []string
	)

	s := newSeats(4, func() bool { return slow }, func(cluster string) { woken = append(woken, cluster) })

	for i := range 6 {
		if entered := s.enter(fmt.Sprintf("c%d", i)); entered != (i < 4) {
			t.Errorf("c%d: %v", i, entered)
		}
	}

	if s.enter("c4") {
		t.Error("c4 came in")
	}

	s.leave()

	if diff := cmp.Diff([]string{"c4", "c5"}, woken); diff != "" {
		t.Errorf("the longest waiting first, and each once: %s", diff)
	}

	if !s.enter("c4") || s.enter("c5") {
		t.Error("one seat was free")
	}

	// Of a slow Omni fewer may wait; who sits already stays.
	slow = true

	s.leave()
	s.leave()

	if s.enter("c6") {
		t.Error("a third run waits for a slow Omni")
	}

	s.leave()

	if !s.enter("c6") || s.enter("c7") {
		t.Error("two runs may wait for a slow Omni")
	}
}

func TestSeatsWithoutABound(t *testing.T) {
	s := newSeats(0, func() bool { return true }, func(string) { t.Error("nobody waits") })

	for range 100 {
		if !s.enter("c") {
			t.Fatal("refused")
		}
	}

	s.leave()
}

// One seat is one seat, however slow the Omni is.
func TestOneSeat(t *testing.T) {
	s := newSeats(1, func() bool { return true }, func(string) {})

	if !s.enter("a") || s.enter("b") {
		t.Error("not one seat")
	}

	s.leave()

	if !s.enter("b") {
		t.Error("no seat")
	}
}
