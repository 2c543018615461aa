// Package skew compares the clock of this process with those of omni-apiserver and kube-apiserver, which send their time
// with every answer.
package skew

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Clock records how far the clocks of the two API servers, which may run on different nodes, are ahead of ours. The zero
// value has no record and returns 0. It is safe for concurrent use.
type Clock struct{ omni, hub atomic.Int64 }

// Ahead returns how far the clock of omni-apiserver was ahead of ours at its last answer; negative if it was behind.
// Answers have whole seconds, so less than two seconds mean nothing.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.omni.Load()) }

// HubAhead is Ahead for kube-apiserver.
func (c *Clock) HubAhead() time.Duration { return time.Duration(c.hub.Load()) }

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
		t.clock.of(request.URL.Path).Store(int64(ahead(asked, time.Now(), said)))
	}

	return response, nil
}

// WrappedRoundTripper returns the transport below, for client-go.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// of returns the record of the server that answers a path: kube-apiserver passes an answer of omni-apiserver on with its time. A
// proxy on the way to the hub may have put something before the path.
func (c *Clock) of(path string) *atomic.Int64 {
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
