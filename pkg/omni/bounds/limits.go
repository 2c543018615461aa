package bounds

import "time"

// The default rate of calls to one Omni. A new cluster is about ten calls, a
// changed one about five, an idle one none, so this is ten new clusters in a
// second for as long as it takes, and twenty at once. An Omni serves far more;
// the rest is left to the people and machines that it has to answer as well.
const (
	DefaultQPS   = 100
	DefaultBurst = 200
)

// MaxThrottle is how long one call waits for its turn at most. Then it fails,
// and the run gives its worker back and comes again with growing pauses.
const MaxThrottle = 5 * time.Second

// The default bounds of what is kept of Omnis; see docs/concepts/limits.md for
// what a fleet takes.
const (
	DefaultResources   = 250_000
	DefaultMemory      = 96 << 20
	DefaultTotalMemory = 192 << 20
)

const (
	// FirstEvent is how long one message of a watch may be at first, in bytes. A
	// resource is mostly 1 to 5 KiB, and an update has it twice. A watch that
	// needs more is opened anew with twice as much.
	FirstEvent = 64 << 10
	// MaxEvent is the most that is tried: two of the largest resources.
	MaxEvent = 2 * MaxAnswer
)

// Limits is how much one connection may ask of its Omni, and how much of an Omni
// is kept.
type Limits struct {
	// QPS is the sustained rate of calls per second. 0: DefaultQPS.
	QPS float64
	// Burst is the number of calls that may go out at once. 0: DefaultBurst.
	Burst int
	// Resources is how many resources of one Omni are kept. 0: DefaultResources.
	Resources int
	// Memory is what the copy of one Omni may take, in bytes; estimated. 0: DefaultMemory.
	Memory int64
	// TotalMemory is what all copies may take together, in bytes. A connection is safe from those of
	// another namespace as long as it takes no more than half of it. 0: DefaultTotalMemory.
	TotalMemory int64
}

// WithDefaults fills in what is 0.
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
