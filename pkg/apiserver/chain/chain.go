// Package chain puts handlers around the library's chain of handlers, and inside of it.
package chain

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// Handler makes a handler that passes requests on to the next one. The configuration is the completed one.
type Handler func(next http.Handler, config *genericapiserver.Config) http.Handler

// Outside has a handler see a request before the library's chain does: neither authenticated nor bounded in time. Of several,
// the one that was put there last sees it first.
func Outside(config *genericapiserver.Config, handler Handler) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(next http.Handler, c *genericapiserver.Config) http.Handler {
		return handler(build(next, c), c)
	}
}

// Inside has a handler see a request after the library's chain: authorised, in the audit, and within its timeout. Of several,
// the one that was put there first sees it first.
func Inside(config *genericapiserver.Config, handler Handler) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(next http.Handler, c *genericapiserver.Config) http.Handler {
		return build(handler(next, c), c)
	}
}
