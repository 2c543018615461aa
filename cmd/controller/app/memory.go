package app

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage may pile up, in percent of what is in use,
// before it is collected. Go's own 100 suits programs that are busy; the
// controller holds copies of a fleet and is idle most of the time, so memory is
// worth more than the processor time of twice as many collections.
const garbagePercent = 50

// preferMemory sets the garbage collector, unless the environment says
// otherwise (GOGC, see the documentation of Go's package runtime).
func preferMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
