package omnikubeconfigexport

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// cause is why a new kubeconfig is needed.
type cause string

// The causes, in words for events.
const (
	causeNone     cause = ""
	causeFirst    cause = "there was none"
	causeChanged  cause = "what it is made from changed"
	causeTampered cause = "the Secret was changed by somebody else"
	causeDue      cause = "its renewal was due"
	causeExpired  cause = "it had expired"
	causeKey      cause = "Omni deleted the key that signed the old one"
	// causeDoubt is no cause, and the kubeconfig that is there stays: by one of two clocks it is good, and nobody knows which one is right.
	causeDoubt cause = "the clocks differ"
)

// clockTolerance is how much longer than its ttl a token may seem to live, because clocks differ. A token that seems to live
// longer is forged: it would never be renewed, and a year beyond 9999 does not fit into a status.
const clockTolerance = 24 * time.Hour

// The pauses before Omni is asked again after it issued a kubeconfig that is not valid by our clock: each one lives until its end,
// unless an Admin of Omni deletes its key (from 1.10.4 on), and with it those of all other readers. The one that it issued is kept, and stored if our clock is mended.
const (
	clockPause        = 10 * time.Minute
	longestClockPause = 6 * time.Hour
)

// times are what need compares.
type times struct {
	now    time.Time
	differ skew.Difference // of another clock from ours
}

// need decides whether a new kubeconfig is needed. If another clock differs from ours, the answer has to be the same by both.
func need(owner ownership, is found, want ingredients, life lifetime, at times) cause {
	ours := needAt(owner, is, want, life, at.now)
	if !at.differ.TooLarge() || ours == causeDoubt {
		return ours
	}

	theirs := needAt(owner, is, want, life, at.now.Add(at.differ.Ahead))
	if ours == theirs || ours != causeNone && theirs != causeNone && theirs != causeDoubt {
		return ours
	}

	return causeDoubt
}

// needAt is need by one clock.
func needAt(owner ownership, is found, want ingredients, life lifetime, now time.Time) cause {
	switch {
	case owner == absent && is.specHash == "": // unless it was deleted to be made again
		return causeFirst
	case is.specHash != want.hash():
		return causeChanged
	case !is.intact, !is.claims.fits(want):
		return causeTampered
	case is.setBack(now):
		return causeDoubt
	case is.claims.tooLong(now, want):
		return causeTampered
	case !now.Before(life.ends(now)):
		return causeExpired
	case !now.Before(life.nextRotation(now)):
		return causeDue
	default:
		return causeNone
	}
}

// setBack reports whether our clock was set back since the kubeconfig was issued and written: both were later than now. What the
// Secret says of that counts only if the status says that it is ours.
func (is found) setBack(now time.Time) bool {
	isLater := func(t time.Time) bool { return t.After(now) && (skew.Difference{Ahead: t.Sub(now)}).TooLarge() }

	return is.recorded && isLater(is.rotated) && isLater(is.claims.issued())
}

// doubt says why a kubeconfig stays as it is. It has no present time: it would be another message in each run.
func (is found) doubt(at times) string {
	why := at.differ.String()
	if !at.differ.TooLarge() {
		why = fmt.Sprintf("the clock of omni-controller was set back, and is behind %s, when the kubeconfig was issued", words.Time(is.claims.issued()))
	}

	return fmt.Sprintf("%s. The kubeconfig stays, valid until %s by the clock of Omni, and no other is issued before the clocks agree: mend the one that is wrong. "+
		"They are compared every %s", why, words.Time(is.claims.expires()), interval)
}

// tooLong reports whether a token lives for longer than was asked for, whatever the clocks say.
func (c claims) tooLong(now time.Time, want ingredients) bool {
	return c.expires().After(now.Add(want.ttl() + clockTolerance))
}

// believable reports whether a token that was issued just now would be used, and not be replaced at once, by one of the clocks.
func (c claims) believable(want ingredients, at times) bool {
	for _, now := range []time.Time{at.now, at.now.Add(at.differ.Ahead)} {
		if now.Before(c.expires()) && !c.tooLong(now, want) {
			return true
		}
	}

	return false
}

// keeps reports whether the old kubeconfig still works if no new one can be issued.
func (c cause) keeps() bool { return c == causeDue }

// fits reports whether a token is for the right user, groups and cluster.
func (c claims) fits(want ingredients) bool {
	return c.User == want.User && c.ClusterUUID == want.ClusterID &&
		slices.Equal(slices.Sorted(slices.Values(c.Groups)), slices.Sorted(slices.Values(want.Groups)))
}

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
