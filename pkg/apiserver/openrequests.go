package apiserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

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
