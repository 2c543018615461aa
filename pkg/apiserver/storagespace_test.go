package apiserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

func TestReportStorageSpace(t *testing.T) {
	const line = "[!]etcd-space does not fail readiness, but: full\n"

	tests := []struct {
		name, notice, path string
		status             int
		body               string
	}{
		{"good", "", "/readyz", http.StatusOK, "inner /readyz"},
		{"good, verbose", "", "/readyz?verbose", http.StatusOK, "inner /readyz"},
		{"good, single", "", "/readyz/etcd-space", http.StatusOK, "ok"},
		{"full", "full", "/readyz", http.StatusOK, "inner /readyz"},
		{"full, verbose", "full", "/readyz?verbose=true", http.StatusOK, "inner /readyz" + line},
		{"full, single", "full", "/readyz/etcd-space", http.StatusInternalServerError, "internal server error: full\n"},
		{"full, other checks", "full", "/readyz/etcd", http.StatusOK, "inner /readyz/etcd"},
		{"full, alive", "full", "/livez?verbose", http.StatusOK, "inner /livez"},
		{"full, objects", "full", "/apis?verbose", http.StatusOK, "inner /apis"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "inner "+r.URL.Path) })
			config := &genericapiserver.Config{BuildHandlerChainFunc: func(h http.Handler, _ *genericapiserver.Config) http.Handler { return h }}
			apiserver.ReportStorageSpace(config, func() string { return test.notice })

			answer := httptest.NewRecorder()
			config.BuildHandlerChainFunc(inner, config).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))

			if answer.Code != test.status || answer.Body.String() != test.body {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Body, test.status, test.body)
			}
		})
	}
}
