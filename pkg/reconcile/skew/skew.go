// Package skew compares the clock of this process with those of omni-apiserver and kube-apiserver, which send their time
// with every answer.
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

// TooLarge reports whether it is more than may be between two clocks that somebody keeps right.
func (d Difference) TooLarge() bool { return d.Ahead.Abs() > tolerance }

// String says it to people.
func (d Difference) String() string {
	return fmt.Sprintf("the clocks of %s and of omni-controller differ by about %s", d.Server, d.Ahead.Abs().Round(told))
}

// Clock records how far the clocks of the two API servers, which may run on different nodes, are ahead of ours. The zero
// value has no record and returns 0. It is safe for concurrent use.
type Clock struct{ omni, hub record }

// Ahead returns how far the clock of omni-apiserver was ahead of ours at its last answer; negative if it was behind.
// Answers have whole seconds, so less than two seconds mean nothing.
func (c *Clock) Ahead() time.Duration { return c.omni.latest() }

// HubAhead is Ahead for kube-apiserver.
func (c *Clock) HubAhead() time.Duration { return c.hub.latest() }

// Worst returns the largest difference of the last minute or two, or that of the last answers if they are older. One of the
// servers is on the same node as this process perhaps, and has the same wrong clock.
func (c *Clock) Worst() Difference {
	omni, hub := Difference{Server: "omni-apiserver", Ahead: c.omni.worst()}, Difference{Server: "kube-apiserver", Ahead: c.hub.worst()}
	if hub.Ahead.Abs() > omni.Ahead.Abs() {
		return hub
	}

	return omni
}

// record has how far the clock of one server, which may have several replicas, is ahead.
type record struct {
	mu      sync.Mutex
	last    time.Duration // at the last answer
	largest time.Duration // since began
	before  time.Duration // the largest of the minute before
	began   time.Time
}

func (r *record) note(ahead time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if now.Sub(r.began) >= memory {
		r.before, r.largest, r.began = r.largest, 0, now
	}

	r.last, r.largest = ahead, larger(r.largest, ahead)
}

func (r *record) latest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.last
}

func (r *record) worst() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	return larger(r.largest, r.before)
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
		answered := time.Now()
		t.clock.of(request.URL.Path).note(ahead(asked, answered, said), answered)
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
