package apiserver

import (
	"errors"
	"net/http"
	"strings"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

// errNoRequestHeaderCA is the error of /readyz, and of requests that come too early.
var errNoRequestHeaderCA = errors.New("the certificate authority of the front proxy " +
	"(requestheader-client-ca-file in kube-system/extension-apiserver-authentication) is not loaded yet")

// requireRequestHeaderCA keeps the server from answering before it can authenticate callers. The library loads the
// front proxy's certificate authority in the background, after it has begun to listen. Until then every request that
// kube-apiserver passes on would look anonymous and get a 403, which clients take as final.
func requireRequestHeaderCA(config *genericapiserver.Config) {
	requestHeader := config.Authentication.RequestHeaderConfig
	if requestHeader == nil {
		return
	}

	check := func(*http.Request) error {
		if _, loaded := requestHeader.CAContentProvider.VerifyOptions(); !loaded {
			return errNoRequestHeaderCA
		}

		return nil
	}

	config.AddReadyzChecks(healthz.NamedCheck("request-header-ca", check))

	chain.Outside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler { return unavailableUntil(check, next) })
}

// unavailableUntil answers 503 while the check fails, except on the health endpoints, which answer for themselves.
func unavailableUntil(check func(*http.Request) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(r); err != nil && !isHealthPath(r.URL.Path) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)

			return
		}

		next.ServeHTTP(w, r)
	})
}

func isHealthPath(path string) bool {
	for _, health := range []string{"/healthz", "/livez", "/readyz"} {
		if path == health || strings.HasPrefix(path, health+"/") {
			return true
		}
	}

	return false
}
