// Package skew compares the clock of this process with those of omni-apiserver and kube-apiserver, which send their time
// with every answer. It is what all controllers ask before the time alone makes them act:
//
//   - What this process measured itself (settle time, pauses, backoff) goes by Go's monotonic clock, and knows of no jump.
//   - What compares our clock with a time that another clock or process wrote (a token, a status, a lock) does nothing that cannot be
//     taken back while the clocks differ. It keeps what is there, and says ClockSkew.
//   - A time of ours that is later than now was written while the clock was ahead, or the clock was set back since.
package skew

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	// tolerance is how far two clocks may differ.
	tolerance = 30 * time.Second
	// memory is how long a difference counts at least; while there are answers, twice that at most. The next one may be of another
	// replica, whose clock is right.
	memory = time.Minute
	// told is what a difference is rounded to in messages, which would else be another one after each answer.
	told = 10 * time.Second
)

// Difference is how far the clock of a server is ahead of ours; negative if it is behind.
type Difference struct {
	Server string
	Ahead  time.Duration
}

// Comparison returns the difference as it is now, as Clock.Worst does. Nil: nobody compares clocks.
type Comparison func() Difference

// Now returns the difference; none if nobody compares.
func (c Comparison) Now() Difference {
	if c == nil {
		return Difference{}
	}

	return c()
}

// TooLarge reports whether it is more than may be between two clocks that somebody keeps right.
func (d Difference) TooLarge() bool { return d.Ahead.Abs() > tolerance }

// Earliest returns the earlier of a time of our clock and what the other clock had then. What others are at work on counts as
// abandoned by the earlier one only.
func (d Difference) Earliest(now time.Time) time.Time {
	if d.TooLarge() && d.Ahead < 0 {
		return now.Add(d.Ahead)
	}

	return now
}

// String says it to people.
func (d Difference) String() string {
	return fmt.Sprintf("the clocks of %s and of omni-controller differ by about %s", d.Server, d.Ahead.Abs().Round(told))
}

// Clock records how far the clocks of the two API servers, which may run on different nodes, are ahead of ours. The zero
// value has no record and returns 0. It is safe for concurrent use.
type Clock struct{ omni, hub record }

// Ahead returns how far the clock of omni-apiserver is ahead of ours by its last answer; negative if it is behind. Answers have
// whole seconds, so less than two seconds mean nothing. If our clock was set since that answer, Ahead counts that.
func (c *Clock) Ahead() time.Duration { return c.omni.latest(readingNow()) }

// HubAhead is Ahead for kube-apiserver.
func (c *Clock) HubAhead() time.Duration { return c.hub.latest(readingNow()) }

// Worst returns the largest difference of the last minute or two, or that of the last answers if they are older. One of the
// servers is on the same node as this process perhaps, and has the same wrong clock.
func (c *Clock) Worst() Difference {
	now := readingNow()

	omni, hub := Difference{Server: "omni-apiserver", Ahead: c.omni.worst(now)}, Difference{Server: "kube-apiserver", Ahead: c.hub.worst(now)}
	if hub.Ahead.Abs() > omni.Ahead.Abs() {
		return hub
	}

	return omni
}

// reading is a time by the clock that people set, and by Go's own, which nobody sets.
type reading struct {
	wall      time.Time
	monotonic time.Duration // since this process began
}

var began = time.Now() //nolint:gochecknoglobals // never changes

func readingNow() reading {
	now := time.Now()

	return reading{wall: now.Round(0), monotonic: now.Sub(began)}
}

// setSince returns how far our clock was set ahead between two readings; negative if it was set back.
func (r reading) setSince(before reading) time.Duration {
	return r.wall.Sub(before.wall) - (r.monotonic - before.monotonic)
}

// record has how far the clock of one server, which may have several replicas, is ahead.
type record struct {
	mu      sync.Mutex
	at      reading       // of the last answer
	last    time.Duration // at the last answer
	largest time.Duration // since began
	before  time.Duration // the largest of the minute before
	began   time.Duration
	known   bool
}

func (r *record) note(ahead time.Duration, now reading) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if now.monotonic-r.began >= memory || !r.known {
		r.before, r.largest, r.began = r.largest, 0, now.monotonic
	}

	r.at, r.last, r.largest, r.known = now, ahead, larger(r.largest, ahead), true
}

func (r *record) latest(now reading) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.lastBy(now)
}

// lastBy returns the difference at the last answer by our clock as it is now. A jump counts before the next answer tells of it.
func (r *record) lastBy(now reading) time.Duration {
	if !r.known {
		return 0
	}

	if set := now.setSince(r.at); set.Abs() > tolerance {
		return r.last - set
	}

	return r.last
}

func (r *record) worst(now reading) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	return larger(larger(r.largest, r.before), r.lastBy(now))
}

// larger returns the one that is further from 0.
func larger(a, b time.Duration) time.Duration {
	if b.Abs() > a.Abs() {
		return b
	}

	return a
}

// Wrap returns a transport that records the times of answers. It is for rest.Config.Wrap.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{clock: c, next: next}
}

type transport struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := time.Now()

	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}

	if said, parseErr := http.ParseTime(response.Header.Get("Date")); parseErr == nil {
		t.clock.of(request.URL.Path).note(ahead(asked, time.Now(), said), readingNow())
	}

	return response, nil
}

// WrappedRoundTripper returns the transport below, for client-go.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// of returns the record of the server that answers a path: kube-apiserver passes an answer of omni-apiserver on with its time. A
// proxy on the way to the hub may have put something before the path.
func (c *Clock) of(path string) *record {
	if strings.Contains(path, "/apis/"+v1alpha1.GroupName+"/") {
		return &c.omni
	}

	return &c.hub
}

// ahead returns how far the server's clock is ahead. The time in an answer was true at some time between request and answer,
// or up to a second earlier, because it has whole seconds.
func ahead(asked, answered, said time.Time) time.Duration {
	switch {
	case said.After(answered):
		return said.Sub(answered)
	case said.Add(time.Second).Before(asked):
		return said.Add(time.Second).Sub(asked)
	default:
		return 0
	}
}
