package app

import (
	"runtime/debug"
	"testing"
)

func TestPreferMemory(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })

	t.Setenv("GOGC", "80")
	preferMemory()

	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC set: %d, want what it was", got)
	}

	t.Setenv("GOGC", "")
	preferMemory()

	if got := debug.SetGCPercent(100); got != garbagePercent {
		t.Errorf("without GOGC: %d, want %d", got, garbagePercent)
	}
}
