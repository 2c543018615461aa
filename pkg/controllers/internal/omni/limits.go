package omni

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

// MaxSnapshot is how much Omni may send as the first contents of one watch, in bytes: all resources of one type at once,
// unpacked. The client library's own limit, 32 MiB, is reached with some thousand machines or some hundred clusters that
// have long manifests, and beyond it nothing of that Omni could be seen.
const MaxSnapshot = 512 << 20

// Limits is how much one connection may ask of its Omni.
type Limits struct {
	// QPS is the sustained rate of calls per second. 0: DefaultQPS.
	QPS float64
	// Burst is the number of calls that may go out at once. 0: DefaultBurst.
	Burst int
}

func (l Limits) withDefaults() Limits {
	if l.QPS <= 0 {
		l.QPS = DefaultQPS
	}

	if l.Burst <= 0 {
		l.Burst = DefaultBurst
	}

	return l
}
