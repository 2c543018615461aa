package apiserver

import (
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// holdTime is how long requests are held back before clients are asked to leave. It is more than what a client that
// sends one request after the other needs to have sent its next.
const holdTime = 300 * time.Millisecond

// sendClientsAway makes clients take their connections elsewhere before a stop, while requests are still served.
//
// kube-apiserver keeps one HTTP/2 connection to one replica for as long as it lasts, whatever the readiness of that
// replica. The library ends connections at the very moment at which it begins to refuse requests: those that are on
// their way then are answered with 503. So in the second half of the shutdown delay, when load balancers have seen that
// /readyz fails and send new connections to other replicas, each answer asks the client to leave: by GOAWAY for HTTP/2,
// by Connection: close for HTTP/1.1. Requests that run on the old connection finish.
//
// Go's HTTP/2 server drops requests that cross its GOAWAY, and kube-apiserver cannot repeat those with a body. So just
// before, requests are held back for a moment: most clients are then waiting for an answer instead of sending. A write
// that arrives within the time that the GOAWAY travels can still fail; it did not take place.
//
// Without a shutdown delay nothing is different from the library.
func sendClientsAway(config *genericapiserver.Config) {
	if config.ShutdownDelayDuration <= 0 {
		return
	}

	d := &goAwaySender{hold: make(chan struct{}), goAway: make(chan struct{})}
	stopping, noticed := config.ShutdownInitiatedNotify(), config.ShutdownDelayDuration/2

	go func() {
		<-stopping
		d.begin(noticed, min(holdTime, noticed/2))
	}()

	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return d.wrap(build(handler, c))
	}
}

// goAwaySender is how far that has come. Both channels are closed in turn.
type goAwaySender struct{ hold, goAway chan struct{} }

// begin waits until the stop was noticed, holds requests back, and then sends clients away.
func (d *goAwaySender) begin(noticed, hold time.Duration) {
	time.Sleep(noticed)
	close(d.hold)
	time.Sleep(hold)
	close(d.goAway)
}

// wrap holds requests back when it is time for that, and later asks the client of each to leave.
func (d *goAwaySender) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-d.hold:
			if !isHealthPath(r.URL.Path) {
				d.wait(w, r)
			}
		default:
		}

		next.ServeHTTP(w, r)
	})
}

// wait returns when it is time to leave, and says so in the answer; or when the client has gone.
func (d *goAwaySender) wait(w http.ResponseWriter, r *http.Request) {
	select {
	case <-d.goAway:
		w.Header().Set("Connection", "close")
	case <-r.Context().Done():
	}
}
