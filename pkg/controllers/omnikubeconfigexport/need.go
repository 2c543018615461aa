package omnikubeconfigexport

import (
	"slices"
	"time"
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
)

// clockTolerance is how much longer than its ttl a token may seem to live, because clocks differ. A token that seems to live
// longer is forged: it would never be renewed, and a year beyond 9999 does not fit into a status.
const clockTolerance = 24 * time.Hour

// clockPause is how long Omni is not asked again after it issued a kubeconfig that is not valid by our clock: each one lives until
// its end, because nobody can revoke it.
const clockPause = 10 * time.Minute

// need decides whether a new kubeconfig is needed.
func need(owner ownership, is found, want ingredients, next, now time.Time) cause {
	switch {
	case owner == absent && is.specHash == "": // unless it was deleted to be made again
		return causeFirst
	case is.specHash != want.hash():
		return causeChanged
	case !is.intact, !is.claims.fits(want), is.claims.tooLong(now, want):
		return causeTampered
	case !now.Before(is.claims.expires()):
		return causeExpired
	case !now.Before(next):
		return causeDue
	default:
		return causeNone
	}
}

// tooLong reports whether a token lives for longer than was asked for, whatever the clocks say.
func (c claims) tooLong(now time.Time, want ingredients) bool {
	return c.expires().After(now.Add(want.ttl() + clockTolerance))
}

// believable reports whether a token that was issued just now would be used, and not be replaced at once.
func (c claims) believable(now time.Time, want ingredients) bool {
	return now.Before(c.expires()) && !c.tooLong(now, want)
}

// keeps reports whether the old kubeconfig still works if no new one can be issued.
func (c cause) keeps() bool { return c == causeDue }

// fits reports whether a token is for the right user, groups and cluster.
func (c claims) fits(want ingredients) bool {
	return c.User == want.User && c.ClusterUUID == want.ClusterID &&
		slices.Equal(slices.Sorted(slices.Values(c.Groups)), slices.Sorted(slices.Values(want.Groups)))
}
