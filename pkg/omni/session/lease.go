package session

// Lease is a session in use. Release it when the work is done; further calls of Release do nothing.
type Lease struct {
	*Session

	release     func()
	acquire     func(cluster string) (release func(), ok bool)
	releaseSlot func() // releases the slot; nil without one
}

// Enter takes one of the connection's slots for a reconcile of a cluster (its name in Omni), until Release. False means
// that all slots are taken: the caller frees its worker, and ClusterChanged wakes it when a slot is free. Enter never
// waits. A connection whose Omni answers slowly has fewer slots. Enter must not be called concurrently with Release.
func (l *Lease) Enter(cluster string) bool {
	if l.releaseSlot != nil {
		return true
	}

	release, ok := l.acquire(cluster)
	l.releaseSlot = release

	return ok
}

// Release releases the session and the slot.
func (l *Lease) Release() {
	if l.releaseSlot != nil {
		l.releaseSlot()
	}

	l.release()
}
