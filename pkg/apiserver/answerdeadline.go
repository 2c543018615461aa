package apiserver

import (
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"

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
