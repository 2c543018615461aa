package bounds

import "time"

// The default rate of calls to one Omni. A new cluster takes about ten calls, a changed one about five, an idle one
// none: so this is a sustained rate of ten new clusters a second, and twenty at once. An Omni serves far more calls;
// the rest is for its other clients and its machines.
const (
	DefaultQPS   = 100
	DefaultBurst = 200
)

// MaxThrottle is the longest time that one call waits for the rate limiter. Then it fails; the reconcile frees its
// worker and is retried with backoff.
const MaxThrottle = 5 * time.Second

// The default bounds of what we keep of Omnis; docs/concepts/limits.md has the sizes of a fleet.
const (
	DefaultResources   = 250_000
	DefaultMemory      = 96 << 20
	DefaultTotalMemory = 192 << 20
)

const (
	// FirstEvent is how long one message of a watch may be at first, in bytes. Most resources have 1 to 5 KiB, and an
	// update has the resource twice. A watch that needs more is opened again with twice the limit.
	FirstEvent = 64 << 10
	// MaxEvent is the largest such limit: two of the largest resources.
	MaxEvent = 2 * MaxAnswer
)

// Limits bounds how many calls one connection may make to its Omni, and how much of an Omni we keep.
type Limits struct {
	// QPS is the sustained rate of calls per second. 0: DefaultQPS.
	QPS float64
	// Burst is the number of calls that may go out at once. 0: DefaultBurst.
	Burst int
	// Resources is how many resources of one Omni we keep. 0: DefaultResources.
	Resources int
	// Memory is the memory that the copy of one Omni may take, in bytes, estimated. 0: DefaultMemory.
	Memory int64
	// TotalMemory is the memory that all copies may take together, in bytes. No other single namespace can end the
	// connections of a namespace whose copies take no more than half of it. 0: DefaultTotalMemory.
	TotalMemory int64
}

// WithDefaults replaces zero fields with their defaults.
func (l Limits) WithDefaults() Limits {
	if l.QPS <= 0 {
		l.QPS = DefaultQPS
	}

	if l.Burst <= 0 {
		l.Burst = DefaultBurst
	}

	if l.Resources <= 0 {
		l.Resources = DefaultResources
	}

	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}

	if l.TotalMemory <= 0 {
		l.TotalMemory = DefaultTotalMemory
	}

	return l
}
