package apiserver

import (
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

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
