// Package garbage configures how much garbage Go lets accumulate in omni-apiserver and omni-controller.
package garbage

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/klog/v2"
)

const (
	// percent is how much garbage may accumulate, in percent of the memory in use, before it is collected. Go's default of
	// 100 suits programs that are busy. Both programs hold a fleet in memory and are idle most of the time, so memory is
	// worth more than the processor time of twice as many collections. docs/development/benchmarks.md has both.
	percent = 50

	// limitShare is the share of the container's memory above which Go collects garbage more often. The rest is for
	// memory that Go does not count: pages of the database that the kernel is about to drop, and child processes.
	limitShare = 0.85
)

// Configure makes Go collect garbage at half of its usual threshold, unless the environment sets GOGC, and work harder
// near the memory limit of the container (the cgroup), unless the environment sets GOMEMLIMIT. A limit that cannot be
// read is logged; without a limit only the threshold counts. See https://go.dev/doc/gc-guide for both variables.
func Configure() { configure(memlimit.FromCgroup) }

// configure is Configure with the source of the memory limit.
func configure(limit memlimit.Provider) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}

	if _, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(limitShare)); err != nil {
		klog.InfoS("The memory limit of the container cannot be read; set GOMEMLIMIT to bound garbage", "reason", err.Error())
	}
}
