package omnikubeconfigexport

import (
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
	// causeDoubt is no cause, and the kubeconfig that is there stays: by one of two clocks it is good, and nobody knows which one is right.
	causeDoubt cause = "the clocks differ"
)

// clockTolerance is how much longer than its ttl a token may seem to live, because clocks differ. A token that seems to live
// longer is forged: it would never be renewed, and a year beyond 9999 does not fit into a status.
const clockTolerance = 24 * time.Hour

// The pauses before Omni is asked again after it issued a kubeconfig that is not valid by our clock: each one lives until its end,
// because nobody can revoke it. The one that it issued is kept, and stored if our clock is mended.
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
