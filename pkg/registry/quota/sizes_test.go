package quota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLargest: the bytes of the largest objects are never estimated too low, and not much too high, whatever is written and
// deleted meanwhile.
func TestLargest(t *testing.T) {
	l := newLedger(Limits{})
	random := rand.New(rand.NewPCG(1, 2))
	stored := map[string]int64{}

	for version := range uint64(4000) {
		name, bytes := fmt.Sprint(random.IntN(600)), int64(1)<<random.IntN(21)
		if bytes += random.Int64N(bytes); random.IntN(4) == 0 {
			bytes = 0 // deleted
		}

		l.set(key{"things", "a", name}, bytes, version)

		if stored[name] = bytes; bytes == 0 {
			delete(stored, name)
		}
	}

	l.set(key{"things", "b", "other"}, 1<<30, 1)

	sizes := []int64{}
	for _, bytes := range stored {
		sizes = append(sizes, bytes)
	}

	slices.Sort(sizes)
	slices.Reverse(sizes)

	var exact int64

	for i, bytes := range sizes {
		exact += bytes

		if got := l.Largest("things", "a", int64(i)+1); got < exact || got > 2*exact {
			t.Errorf("the %d largest: got %d, want %d", i+1, got, exact)
		}
	}

	if got := l.Largest("things", "a", 1<<40); got != exact || got != l.Stored("things", "a").Bytes {
		t.Errorf("all: got %d, want %d", got, exact)
	}

	if got := l.Largest("things", "", 1); got != 1<<30 {
		t.Errorf("in all namespaces: got %d", got)
	}

	for name := range stored {
		l.set(key{"things", "a", name}, 0, 5000)
	}

	if l.set(key{"things", "b", "other"}, 0, 5000); len(l.classes) != 0 {
		t.Errorf("left over: %v", l.classes)
	}
}

// TestLargestOfAFleet: objects of about the same size are estimated closely.
func TestLargestOfAFleet(t *testing.T) {
	l := newLedger(Limits{})

	for i := range int64(2000) {
		l.set(key{"things", fmt.Sprint(i % 50), fmt.Sprint(i)}, 4500+i%200, 1)
	}

	if got, most := l.Largest("things", "", 500), int64(500*4700*3/2); got > most {
		t.Errorf("a page: %d, at most %d", got, most)
	}
}
