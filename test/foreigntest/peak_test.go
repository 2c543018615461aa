package foreigntest

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

// failure notes what would have failed a test.
type failure struct {
	testing.TB

	noted bool
}

func (f *failure) Errorf(string, ...any) { f.noted = true }

// What is held counts, and what is left behind does not.
func TestWantPeak(t *testing.T) {
	const limit, piece = 64 << 20, 64 << 10

	for _, test := range []struct {
		held, left int // bytes
		fails      bool
	}{
		{held: 0, left: 1 << 28},
		{held: limit / 3, left: 1 << 28},
		{held: limit + limit/8, left: 0, fails: true},
		{held: limit + limit/8, left: 1 << 28, fails: true},
	} {
		var found failure

		found.TB = t

		WantPeak(&found, limit, func() {
			held := bytes.Repeat([]byte("x"), test.held)

			for range test.left / piece {
				runtime.KeepAlive(bytes.Repeat([]byte("x"), piece))
			}

			time.Sleep(10 * samplePause)
			runtime.KeepAlive(held)
		})

		if found.noted != test.fails {
			t.Errorf("%d MiB held, %d left behind: failed %t", test.held>>20, test.left>>20, found.noted)
		}
	}
}
