package garbage

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
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
		{"not set", "", Controller},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOGC", test.variable)
			Configure(Controller, 0)

			if got := debug.SetGCPercent(100); got != test.want {
				t.Errorf("collects at %d %%, want %d", got, test.want)
			}

			if got := debug.SetMemoryLimit(-1); got != limit {
				t.Errorf("memory limit %d, want what the environment says", got)
			}
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	before, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)

	t.Cleanup(func() {
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	})

	t.Setenv("GOMEMLIMIT", "") // restored at the end
	os.Unsetenv("GOMEMLIMIT")

	none := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }

	for name, test := range map[string]struct {
		limit    memlimit.Provider
		children int64
		want     int64
	}{
		"limit":                    {memlimit.Limit(1000 << 20), 0, 850 << 20},
		"children":                 {memlimit.Limit(1000 << 20), 300 << 20, 665 << 20},
		"small children":           {memlimit.Limit(1000 << 20), 20 << 20, 850 << 20},
		"the children take it all": {memlimit.Limit(1000 << 20), 900 << 20, 500 << 20},
		"no limit":                 {none(memlimit.ErrNoLimit), 300 << 20, math.MaxInt64},
		"cannot be read":           {none(errors.New("nonsense")), 0, 1 << 40}, // as it was
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(1 << 40)
			configure(APIServer, test.children, test.limit)

			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
