package garbage

import (
	"runtime/debug"
	"testing"
)

func TestConfigure(t *testing.T) {
	before, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)

	t.Cleanup(func() {
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	})

	t.Setenv("GOMEMLIMIT", "3GiB")

	for _, test := range []struct {
		name, variable string
		want           int
	}{
		{"the environment sets it", "80", 100}, // Go has read it at the start of the process
		{"not set", "", percent},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOGC", test.variable)
			Configure()

			if got := debug.SetGCPercent(100); got != test.want {
				t.Errorf("collects at %d %%, want %d", got, test.want)
			}

			if got := debug.SetMemoryLimit(-1); got != limit {
				t.Errorf("memory limit %d, want what the environment says", got)
			}
		})
	}
}
