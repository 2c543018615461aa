package omni

import (
	"sync"
)

// Lease is a session in use. Release it exactly when the work is done; more
// than once does no harm.
type Lease struct {
	*Session

	release func()
	leave   func() // gives the seat back; nil without one
}

// Enter takes one of the connection's seats for a run of a cluster (its name in
// Omni), until Release. False means that enough runs work with this connection
// already: the caller gives its worker back, and ClusterChanged wakes it when a
// seat is free. It never waits. A connection whose Omni answers slowly has
// fewer seats. It must not be called at the same time as Release.
func (l *Lease) Enter(cluster string) bool {
	if l.seats == nil || l.leave != nil {
		return true
	}

	if !l.seats.Enter(cluster) {
		return false
	}

	l.leave = sync.OnceFunc(l.seats.Leave)

	return true
}

// Release gives the session back, and the seat.
func (l *Lease) Release() {
	if l.leave != nil {
		l.leave()
	}

	l.release()
}
