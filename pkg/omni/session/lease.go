package session

// Lease is a session in use. Release it exactly when the work is done; more
// than once does no harm.
type Lease struct {
	*Session

	release     func()
	acquire     func(cluster string) (release func(), ok bool)
	releaseSlot func() // gives the slot back; nil without one
}

// Enter takes one of the connection's slots for a run of a cluster (its name in
// Omni), until Release. False means that enough runs work with this connection
// already: the caller gives its worker back, and ClusterChanged wakes it when a
// slot is free. It never waits. A connection whose Omni answers slowly has
// fewer slots. It must not be called at the same time as Release.
func (l *Lease) Enter(cluster string) bool {
	if l.releaseSlot != nil {
		return true
	}

	release, ok := l.acquire(cluster)
	l.releaseSlot = release

	return ok
}

// Release gives the session back, and the slot.
func (l *Lease) Release() {
	if l.releaseSlot != nil {
		l.releaseSlot()
	}

	l.release()
}
