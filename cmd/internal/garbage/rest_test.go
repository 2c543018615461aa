package garbage

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestWorthwhile: memory is given back once the program rests, not at work, and again only after more has accumulated.
func TestWorthwhile(t *testing.T) {
	var r rest

	for _, step := range []struct {
		name  string
		now   usage
		given *usage // what is held after memory was given back; nil if none is to be
	}{
		{"at the start nothing is known", usage{allocated: 10, live: 0, held: 10}, nil},
		{"at work", usage{allocated: 1000, live: 100, held: 200}, nil},
		{"at rest", usage{allocated: 1010, live: 100, held: 200}, &usage{allocated: 1010, live: 100, held: 120}},
		{"still at rest", usage{allocated: 1015, live: 100, held: 125}, nil},
		{"a little garbage", usage{allocated: 1035, live: 100, held: 140}, nil},
		{"enough of it", usage{allocated: 1055, live: 100, held: 160}, &usage{allocated: 1055, live: 100, held: 120}},
		{"at work again", usage{allocated: 2000, live: 100, held: 200}, nil},
		{"much less in use", usage{allocated: 2005, live: 50, held: 200}, &usage{allocated: 2005, live: 50, held: 175}},
		{"parts of pages that cannot be given back", usage{allocated: 2010, live: 50, held: 180}, nil},
		{"a growing fleet", usage{allocated: 9000, live: 1000, held: 1900}, nil},
		{"at rest, and work begins meanwhile", usage{allocated: 9010, live: 1000, held: 1900}, &usage{allocated: 9500, live: 1000, held: 1800}},
		{"at work with the large fleet", usage{allocated: 12000, live: 1000, held: 1900}, nil},
		{"at rest with it", usage{allocated: 12010, live: 1000, held: 1900}, &usage{allocated: 12010, live: 1000, held: 1050}},
	} {
		if got := r.worthwhile(step.now); got != (step.given != nil) {
			t.Fatalf("%s: got %t", step.name, got)
		}

		if step.given != nil {
			r.given(*step.given)
		}
	}
}

// TestReadUsage: what the estimate reads is what the program holds.
func TestReadUsage(t *testing.T) {
	const size = 64 << 20

	before := readUsage()
	block := make([]byte, size)

	runtime.GC()

	full := readUsage()
	if full.allocated-before.allocated < size || full.live < size || full.held < size {
		t.Errorf("before %+v, with a block of 64 MiB %+v", before, full)
	}

	runtime.KeepAlive(block) // and no longer
	debug.FreeOSMemory()

	if after := readUsage(); after.held > full.held-size/2 {
		t.Errorf("with a block of 64 MiB %+v, without %+v", full, after)
	}
}
