package apiserver

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// lateCA is a certificate authority that is loaded some time after the start.
type lateCA struct {
	dynamiccertificates.CAContentProvider

	loaded bool
}

func (c *lateCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, c.loaded }

func TestNoAnswerBeforeTheRequestHeaderCA(t *testing.T) {
	ca := &lateCA{}
	config := &genericapiserver.Config{
		BuildHandlerChainFunc: func(handler http.Handler, _ *genericapiserver.Config) http.Handler { return handler },
	}
	config.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{CAContentProvider: ca}
	requireRequestHeaderCA(config)

	handler := config.BuildHandlerChainFunc(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}), config)

	tests := []struct {
		path   string
		loaded bool
		want   int
	}{
		{"/apis/omni.texashpc.com/v1alpha1", false, http.StatusServiceUnavailable},
		{"/openapi/v2", false, http.StatusServiceUnavailable},
		{"/readyzzz", false, http.StatusServiceUnavailable},
		{"/readyz", false, http.StatusTeapot},
		{"/livez/ping", false, http.StatusTeapot},
		{"/healthz", false, http.StatusTeapot},
		{"/apis/omni.texashpc.com/v1alpha1", true, http.StatusTeapot},
	}
	for _, test := range tests {
		ca.loaded = test.loaded
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, test.path, nil))

		if recorder.Code != test.want {
			t.Errorf("%s, loaded %t: status %d, want %d", test.path, test.loaded, recorder.Code, test.want)
		}

		if test.want == http.StatusServiceUnavailable && recorder.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: no Retry-After", test.path)
		}
	}
}

func TestReadyWithTheRequestHeaderCA(t *testing.T) {
	ca := &lateCA{}
	config := &genericapiserver.Config{}
	config.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{CAContentProvider: ca}
	requireRequestHeaderCA(config)

	if len(config.ReadyzChecks) != 1 || config.ReadyzChecks[0].Name() != "request-header-ca" {
		t.Fatalf("checks %v", config.ReadyzChecks)
	}

	check := config.ReadyzChecks[0]
	if err := check.Check(nil); err == nil || !strings.Contains(err.Error(), "requestheader-client-ca-file") {
		t.Errorf("before: %v", err)
	}

	ca.loaded = true

	if err := check.Check(nil); err != nil {
		t.Errorf("after: %v", err)
	}
}

func TestNoFrontProxyNothingToWaitFor(t *testing.T) {
	config := &genericapiserver.Config{}
	requireRequestHeaderCA(config)

	if len(config.ReadyzChecks) != 0 || config.BuildHandlerChainFunc != nil {
		t.Error("a server without request headers waits for their certificate authority")
	}
}
