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

// The shares of the container's memory limit above which Go collects garbage more often.
const (
	// limitShare is that of a program without child processes. The rest is for memory that Go does not count: pages of the
	// database that the kernel is about to drop.
	limitShare = 0.85
	// remainderShare is that of what child processes leave, and leastShare that of the whole which they always leave:
	// with less, a program collects garbage without an end.
	remainderShare = 0.95
	leastShare     = 0.5
)

// Configure makes Go collect garbage at a threshold in percent, unless the environment sets GOGC, and work harder near the
// memory limit of the container (the cgroup), unless the environment sets GOMEMLIMIT. children is how many bytes the child
// processes in the same container may take. A limit that cannot be read is logged; without a limit only the threshold
// counts. See https://go.dev/doc/gc-guide for both variables.
func Configure(percent int, children int64) { configure(percent, children, memlimit.FromCgroup) }

// configure is Configure with the source of the memory limit.
func configure(percent int, children int64, limit memlimit.Provider) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}

	own := func() (uint64, error) {
		bytes, err := limit()

		return ownLimit(bytes, children), err
	}

	if _, err := memlimit.Set(memlimit.WithProvider(own), memlimit.WithRatio(1)); err != nil {
		klog.InfoS("The memory limit of the container cannot be read; set GOMEMLIMIT to bound garbage", "reason", err.Error())
	}
}

// ownLimit returns what Go may use of a container's memory limit beside child processes, in bytes.
func ownLimit(limit uint64, children int64) uint64 {
	whole := float64(limit)

	return uint64(min(limitShare*whole, max(leastShare*whole, remainderShare*(whole-float64(children)))))
}
