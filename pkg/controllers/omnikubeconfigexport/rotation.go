package omnikubeconfigexport

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	// maxJitterPercent of the ttl is how much earlier than due a kubeconfig is renewed at most.
	maxJitterPercent = 5
	// shortestLife is how long a kubeconfig is kept at least, whatever renewBefore says: with 10m
	// and 9m59s it would otherwise be renewed every second.
	shortestLife = time.Minute
)

// lifetime is what a rotation is computed from.
type lifetime struct {
	ttl, renewBefore time.Duration
	expires          time.Time
	rotated          time.Time // when it was written; zero if unknown
	seed             string    // makes the jitter: the same for one kubeconfig, another for the next
}

// nextRotation is when a new kubeconfig is due: renewBefore ahead of the
// expiry, or a little earlier, so that exports that were made together are not
// renewed together. It is never later, and a restart does not change it.
func (l lifetime) nextRotation() time.Time {
	due := l.expires.Add(-l.renewBefore)
	most := l.ttl * maxJitterPercent / 100

	if !l.rotated.IsZero() {
		// A short time to go is not jittered away.
		most = min(most, due.Sub(l.rotated)/2)
	}

	next := due
	if most > 0 {
		next = due.Add(-time.Duration(fraction(l.seed) * float64(most)))
	}

	if earliest := l.rotated.Add(shortestLife); !l.rotated.IsZero() && next.Before(earliest) && earliest.Before(l.expires) {
		next = earliest
	}

	return next.UTC().Truncate(time.Second)
}

// fraction turns a text into a number from 0 to 1.
func fraction(seed string) float64 {
	sum := sha256.Sum256([]byte(seed))

	return float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32)
}
