package apiserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/lists"
)

// boundAnswers ends an answer that its client does not read: the memory that it holds is everybody's. The library's own
// timeout does not end it, as it waits for the write. Reads of one object are not bounded, and package lists bounds watches.
//
// It is outside of the library's chain: what is inside of its timeout may go on when the answer has ended, and must not touch it.
func boundAnswers(config *genericapiserver.Config) {
	chain.Outside(config, func(next http.Handler, c *genericapiserver.Config) http.Handler {
		isBounded := func(r *http.Request) bool {
			info, err := c.RequestInfoResolver.NewRequestInfo(r)
			if err != nil {
				return false // the chain refuses it
			}

			// A read of one object holds no part of a budget, and the deadline would be a tenth of its cost. A template is large.
			isSmall := info.Verb == "get" && info.Subresource == ""

			return !isSmall && !c.LongRunningFunc(r, info)
		}

		return withAnswerDeadline(next, isBounded, lists.AnswerTimeout(c))
	})
}

func withAnswerDeadline(next http.Handler, isBounded func(*http.Request) bool, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBounded(r) {
			answer := http.NewResponseController(w)

			// A connection of HTTP/1 serves more requests; with HTTP/2 the deadline is the request's.
			if err := answer.SetWriteDeadline(time.Now().Add(timeout)); err == nil && r.ProtoMajor < 2 {
				defer func() { _ = answer.SetWriteDeadline(time.Time{}) }()
			}
		}

		next.ServeHTTP(w, r)
	})
}

// holdTime is how long the server holds requests back before it asks clients to leave. It is longer than a client
// that sends one request after another needs to send its next one.
const holdTime = 300 * time.Millisecond

// sendClientsAway makes clients open connections to other replicas before a stop, while this server still serves.
//
// kube-apiserver keeps one HTTP/2 connection to one replica for as long as the connection lasts, whatever the
// replica's readiness. The library closes connections at the moment it begins to refuse requests, so requests on
// their way at that moment get 503. In the first half of the shutdown delay, load balancers see that /readyz fails
// and send new connections to other replicas. In the second half, therefore, each answer asks the client to leave: by
// GOAWAY for HTTP/2, by Connection: close for HTTP/1.1. Requests that run on the old connection finish.
//
// Go's HTTP/2 server drops requests that cross its GOAWAY, and kube-apiserver cannot repeat requests with a body. So
// requests are held back for a moment just before: most clients then wait for an answer instead of sending. A write
// that arrives while the GOAWAY travels can still fail; the server has not executed it.
//
// Without a shutdown delay the server behaves as the library does.
func sendClientsAway(config *genericapiserver.Config) {
	if config.ShutdownDelayDuration <= 0 {
		return
	}

	s := &goAwaySender{hold: make(chan struct{}), goAway: make(chan struct{})}
	stopping, noticed := config.ShutdownInitiatedNotify(), config.ShutdownDelayDuration/2

	go func() {
		<-stopping
		s.begin(noticed, min(holdTime, noticed/2))
	}()

	chain.Outside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler { return s.wrap(next) })
}

// goAwaySender signals the two steps: it closes hold, then goAway.
type goAwaySender struct{ hold, goAway chan struct{} }

// begin gives load balancers the time noticed to see the stop, holds requests back for the time hold, and then sends
// clients away.
func (s *goAwaySender) begin(noticed, hold time.Duration) {
	time.Sleep(noticed)
	close(s.hold)
	time.Sleep(hold)
	close(s.goAway)
}

// wrap holds requests back once hold is closed. Once goAway is closed, it asks the client of each request to leave.
func (s *goAwaySender) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.hold:
			if !isHealthPath(r.URL.Path) {
				s.wait(w, r)
			}
		default:
		}

		next.ServeHTTP(w, r)
	})
}

// wait returns when goAway is closed, and then asks the client to leave, or when the client has disconnected.
func (s *goAwaySender) wait(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.goAway:
		w.Header().Set("Connection", "close")
	case <-r.Context().Done():
	}
}

const (
	// requestGracePeriod is how long a stop waits for running requests. Webhooks have ten seconds to answer unless
	// configured otherwise, and nothing else here takes as long.
	requestGracePeriod = 20 * time.Second

	// closeTime is how much longer connections may take to close.
	closeTime = 3 * time.Second
)

// errStopping is the cause with which a stop ends a request's context.
var errStopping = errors.New("the server stops, and this request took too long")

// endOpenRequests ends requests that are still running the given time after the server began to refuse new ones.
//
// The library waits a minute for them. One client that sends half a body and then nothing would delay a restart that
// long. With an embedded etcd no other replica serves meanwhile; with a shutdown delay kubelet would kill the process
// first, together with everything else it still does.
func endOpenRequests(config *genericapiserver.Config, after time.Duration) {
	over, end := context.WithCancelCause(context.Background())
	stopping, grace := config.ShutdownInitiatedNotify(), config.ShutdownDelayDuration+after

	go func() {
		<-stopping
		time.Sleep(grace)
		end(errStopping)
	}()

	chain.Outside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler { return endWith(over, next) })
}

// endWith ends every request when the context ends, and logs which ones. The library answers them with 504.
func endWith(over context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)

		defer context.AfterFunc(over, func() {
			klog.FromContext(r.Context()).Info("Ended a request that held up the stop", "method", r.Method, "path", r.URL.Path, "userAgent", r.UserAgent(), "from", r.RemoteAddr)
			cancel(context.Cause(over))
		})()

		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
