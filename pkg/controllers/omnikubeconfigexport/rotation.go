package omnikubeconfigexport

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// maxJitterPercent of the ttl is how much earlier than due a kubeconfig may be renewed.
	maxJitterPercent = 5
	// shortestLife is how long a kubeconfig is kept at least: with a ttl of 10m and a renewBefore of 9m59s it would
	// otherwise be renewed every second.
	shortestLife = time.Minute
)

// lifetime has the times from which a rotation is computed.
type lifetime struct {
	ttl, renewBefore time.Duration
	issued, expires  time.Time // by the clock of Omni, which judges the token; issued is zero if unknown
	rotated          time.Time // when it was written, by our clock; zero if unknown
	seed             string    // makes the jitter: the same for one kubeconfig, another for the next
}

// ends returns when the token ends by our clock. Omni's may be hours ahead of ours or behind it, and then the token lives from the time
// when it was written for as long as its own times say. A time of writing that is still to come says nothing: our clock was set since.
func (l lifetime) ends(now time.Time) time.Time {
	if l.issued.IsZero() || l.rotated.IsZero() || l.rotated.After(now) || !(skew.Difference{Ahead: l.issued.Sub(l.rotated)}).TooLarge() {
		return l.expires
	}

	return l.rotated.Add(l.expires.Sub(l.issued))
}

// nextRotation returns when a new kubeconfig is due: renewBefore ahead of the expiry, or a little earlier, so that
// exports that were created together are not renewed together. It is never later, and a restart does not change it.
func (l lifetime) nextRotation(now time.Time) time.Time {
	if l.rotated.After(now) { // our clock was ahead then
		l.rotated = time.Time{}
	}

	ends := l.ends(now)
	due := ends.Add(-l.renewBefore)
	most := l.ttl * maxJitterPercent / 100

	if !l.rotated.IsZero() {
		// The jitter must not use up a short remaining time.
		most = min(most, due.Sub(l.rotated)/2)
	}

	next := due
	if most > 0 {
		next = due.Add(-time.Duration(fraction(l.seed) * float64(most)))
	}

	if earliest := l.rotated.Add(shortestLife); !l.rotated.IsZero() && next.Before(earliest) && earliest.Before(ends) {
		next = earliest
	}

	return words.StoredTime(next).Time
}

// fraction converts a text to a number from 0 to 1.
func fraction(seed string) float64 {
	sum := sha256.Sum256([]byte(seed))

	return float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32)
}
