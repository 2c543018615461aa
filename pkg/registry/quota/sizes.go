package quota

import "math/bits"

// class is the objects of a kind whose sizes have the same power of two: from 1<<(power-1) to 1<<power - 1 bytes.
type class struct {
	kind  key
	power int
}

// largestPower is the power of the largest size that there could be.
const largestPower = 63

// Largest returns how many bytes so many objects of a kind in a namespace have at most; an empty namespace means all. It
// is never less than the bytes of the largest objects, and at most twice as much.
func (l *Ledger) Largest(resource, namespace string, objects int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	var bytes int64

	for power := largestPower; power > 0 && objects > 0; power-- {
		of := l.classes[class{key{resource: resource, namespace: namespace}, power}]
		if of.Objects == 0 {
			continue
		}

		// All others of the class have at least its smallest size.
		taken := min(objects, of.Objects)
		bytes += min(taken<<power, of.Bytes-(of.Objects-taken)<<(power-1))
		objects -= taken
	}

	return bytes
}

// count adds or removes an object of a size. The caller holds the lock.
func (l *Ledger) count(k key, bytes, objects int64) {
	if bytes == 0 {
		return
	}

	for _, kind := range []key{{resource: k.resource}, {resource: k.resource, namespace: k.namespace}} {
		of := class{kind, bits.Len64(uint64(bytes))} //nolint:gosec // a size is not negative
		if after := l.classes[of].plus(Use{objects, objects * bytes}); after != (Use{}) {
			l.classes[of] = after
		} else {
			delete(l.classes, of)
		}
	}
}
