// Package garbage bounds the memory that omni-apiserver and omni-controller hold without using it.
package garbage

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/util/wait"
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

const (
	// restInterval is how often GiveBack looks whether the program rests: a rest costs one collection in that time at most.
	restInterval = 15 * time.Second
	// growth is the share of the memory in use that a resting program allocates in an interval at most, and that may be
	// held beyond it.
	growth = 0.25
)

// GiveBack gives the memory that is not in use back to the kernel when the program rests, until the context ends.
//
// Go collects garbage when it needs room: a program that has worked and rests now keeps what it needed at work, which is
// twice the memory in use and more. A fleet rests most of the time. The memory in use is known as of the last
// collection, and Go makes one every two minutes.
func GiveBack(ctx context.Context) {
	var rest rest

	wait.UntilWithContext(ctx, func(context.Context) {
		before := readUsage()
		if !rest.worthwhile(before) {
			return
		}

		debug.FreeOSMemory()

		after := readUsage()
		rest.given(after)
		klog.V(2).InfoS("Gave memory that is not in use back to the kernel", "heldBefore", int64(before.held), "heldNow", int64(after.held), "inUse", int64(after.live))
	}, restInterval)
}

// usage is the memory of the heap, in bytes.
type usage struct {
	allocated float64 // since the start of the program
	live      float64 // in use at the end of the last collection
	held      float64 // what the kernel cannot have: objects, garbage, and what Go keeps for later
}

// readUsage asks Go's runtime, which does not stop the program for it.
func readUsage() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)

	value := func(i int) float64 { return float64(samples[i].Value.Uint64()) }

	return usage{allocated: value(0), live: value(1), held: value(2) + value(3) + value(4)}
}

// rest remembers what tells whether the program rests and holds more than it has to.
type rest struct {
	allocated float64
	slack     float64 // held beyond the memory in use when the last was given back: parts of pages stay
}

// worthwhile reports whether the program has rested since the last call, and holds much more than it needs.
func (r *rest) worthwhile(now usage) bool {
	resting := now.allocated-r.allocated < growth*now.live
	r.allocated = now.allocated

	return resting && now.held-now.live > r.slack+growth*now.live
}

// given remembers what is held after memory was given back, unless the program has begun to work meanwhile.
func (r *rest) given(now usage) {
	if now.allocated-r.allocated < growth*now.live {
		r.slack = max(now.held-now.live, 0)
	}
}
