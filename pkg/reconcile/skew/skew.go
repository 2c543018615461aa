// Package skew compares the clock of this process with that of the API server, which sends its time with every answer.
package skew

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Clock records how far the clock of the API server is ahead of ours. The zero value has no record and returns 0. It is
// safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

// Ahead returns how far the API server's clock was ahead of ours at its last answer; negative if it was behind. Answers
// have whole seconds, so less than two seconds mean nothing.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

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
		t.clock.note(asked, time.Now(), said)
	}

	return response, nil
}

// WrappedRoundTripper returns the transport below, for client-go.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// note records an answer. The time in it was true at some time between request and answer, or up to a second earlier,
// because it has whole seconds.
func (c *Clock) note(asked, answered, said time.Time) {
	switch {
	case said.After(answered):
		c.ahead.Store(int64(said.Sub(answered)))
	case said.Add(time.Second).Before(asked):
		c.ahead.Store(int64(said.Add(time.Second).Sub(asked)))
	default:
		c.ahead.Store(0)
	}
}
