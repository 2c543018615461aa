package apiserver_test

import (
	"crypto/x509"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// frontProxyCA is a certificate authority that is loaded some time after the start.
type frontProxyCA struct {
	dynamiccertificates.CAContentProvider

	loaded atomic.Bool
}

func (c *frontProxyCA) VerifyOptions() (x509.VerifyOptions, bool) {
	return x509.VerifyOptions{}, c.loaded.Load()
}

// TestServerWaitsForTheRequestHeaderCA: the server that Complete makes is not ready, and answers no request, before
// it can authenticate callers.
func TestServerWaitsForTheRequestHeaderCA(t *testing.T) {
	ca := &frontProxyCA{}
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.Generic.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{CAContentProvider: ca}
	}))

	for _, tc := range []struct {
		loaded bool
		path   string
		want   int
		says   string
	}{
		{false, clusters, http.StatusServiceUnavailable, "requestheader-client-ca-file"},
		{false, "/readyz/request-header-ca", http.StatusInternalServerError, ""},
		{true, clusters, http.StatusOK, `"items":[]`},
		{true, "/readyz/request-header-ca", http.StatusOK, "ok"},
	} {
		ca.loaded.Store(tc.loaded)

		if status, body := s.get(t, tc.path, ""); status != tc.want || !strings.Contains(string(body), tc.says) {
			t.Errorf("%s, loaded %t: status %d, want %d with %q: %s", tc.path, tc.loaded, status, tc.want, tc.says, body)
		}
	}
}
