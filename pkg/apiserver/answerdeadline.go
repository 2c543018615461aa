package apiserver

import (
	"net/http"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// boundAnswers ends an answer that its client does not read: the memory that it holds is everybody's. The library's own
// timeout does not end it, as it waits for the write. Watches are not bounded.
//
// The bound is the timeout of requests and a quarter of it, so that the library answers first where it can.
func boundAnswers(config *genericapiserver.Config) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withAnswerDeadline(handler, c.LongRunningFunc, c.RequestTimeout+c.RequestTimeout/4), c)
	}
}

func withAnswerDeadline(next http.Handler, isLongRunning genericapirequest.LongRunningRequestCheck, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, found := genericapirequest.RequestInfoFrom(r.Context())
		if !found || isLongRunning(r, info) {
			next.ServeHTTP(w, r)

			return
		}

		answer := http.NewResponseController(w)
		if answer.SetWriteDeadline(time.Now().Add(timeout)) == nil {
			defer func() { _ = answer.SetWriteDeadline(time.Time{}) }() // a connection of HTTP/1 serves more requests
		}

		next.ServeHTTP(w, r)
	})
}
