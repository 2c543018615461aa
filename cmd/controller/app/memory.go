package app

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage may accumulate, in percent of the memory in use, before it is collected. Go's
// default of 100 suits busy programs. The controller holds copies of a fleet and is idle most of the time, so memory
// is worth more than the processor time of twice as many collections.
const garbagePercent = 50

// preferMemory configures the garbage collector, unless the environment sets GOGC (see the documentation of Go's
// package runtime).
func preferMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
