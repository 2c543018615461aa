// Package garbage bounds the memory that omni-apiserver and omni-controller hold without using it.
package garbage

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/klog/v2"
)

// How much garbage may accumulate, in percent of the memory in use, before it is collected. docs/development/benchmarks.md
// has the memory and the processor time of both values.
const (
	// APIServer is Go's default: twice as many collections made omni-apiserver slower than a CRD, because every request
	// pays for them.
	APIServer = 100
	// Controller suits a program that holds a fleet in memory and is idle most of the time: memory is worth more than the
	// processor time of twice as many collections.
	Controller = 50
)

// limitShare is the share of the container's memory above which Go collects garbage more often. The rest is for memory
// that Go does not count: pages of the database that the kernel is about to drop, and child processes.
const limitShare = 0.85

// Configure makes Go collect garbage at a threshold in percent, unless the environment sets GOGC, and work harder near the
// memory limit of the container (the cgroup), unless the environment sets GOMEMLIMIT. A limit that cannot be read is
// logged; without a limit only the threshold counts. See https://go.dev/doc/gc-guide for both variables.
func Configure(percent int) { configure(percent, memlimit.FromCgroup) }

// configure is Configure with the source of the memory limit.
func configure(percent int, limit memlimit.Provider) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}

	if _, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(limitShare)); err != nil {
		klog.InfoS("The memory limit of the container cannot be read; set GOMEMLIMIT to bound garbage", "reason", err.Error())
	}
}
