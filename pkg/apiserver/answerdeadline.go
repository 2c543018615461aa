package apiserver

import (
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// boundAnswers ends an answer that its client does not read: the memory that it holds is everybody's. The library's own
// timeout does not end it, as it waits for the write. Watches are not bounded.
//
// The bound is the timeout of requests and a quarter of it, so that the library answers first where it can. This handler is
// outside of the chain: what is inside of the library's timeout may go on when the answer has ended, and must not touch it.
func boundAnswers(config *genericapiserver.Config) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		isLongRunning := func(r *http.Request) bool {
			info, err := c.RequestInfoResolver.NewRequestInfo(r)

			return err != nil || c.LongRunningFunc(r, info)
		}

		return withAnswerDeadline(build(handler, c), isLongRunning, c.RequestTimeout+c.RequestTimeout/4)
	}
}

func withAnswerDeadline(next http.Handler, isLongRunning func(*http.Request) bool, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := http.NewResponseController(w); !isLongRunning(r) && answer.SetWriteDeadline(time.Now().Add(timeout)) == nil {
			defer func() { _ = answer.SetWriteDeadline(time.Time{}) }() // a connection of HTTP/1 serves more requests
		}

		next.ServeHTTP(w, r)
	})
}
