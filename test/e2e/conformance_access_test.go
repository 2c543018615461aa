package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"
)

// Somebody who reaches the server past kube-apiserver cannot say who they are by headers.
func TestForgedHeadersAreNotBelieved(t *testing.T) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(stack.Hub.CA())

	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}

	pair, err := tls.X509KeyPair(stack.Hub.FrontProxyClient())
	if err != nil {
		t.Fatal(err)
	}

	proxy := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}

	const objects = "/apis/omni.texashpc.com/v1alpha1/omniclusters"

	for _, tc := range []struct {
		name   string
		client *http.Client
		path   string
		header http.Header
		want   int
	}{
		{"forged", client, objects, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 401},
		{"forged, discovery", client, "/apis", http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 401},
		{"a token nobody issued", client, objects, http.Header{"Authorization": {"Bearer none"}}, 401},
		{"nobody", client, "/metrics", nil, 401},
		{"nobody, health", client, "/readyz", nil, 200},
		{"the front proxy for a user without rights", proxy, objects, http.Header{"X-Remote-User": {"joe"}}, 403},
		{"the front proxy for an administrator", proxy, objects, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stack.OmniAPIServer.URL()+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}

			for key, values := range tc.header {
				request.Header[key] = values
			}

			answer, err := tc.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()

			if answer.StatusCode != tc.want {
				t.Errorf("status %d, want %d", answer.StatusCode, tc.want)
			}
		})
	}
}

// What the server waits for before it answers, beside what the library does, is among its own checks.
func TestReadinessOfTheServer(t *testing.T) {
	t.Parallel()

	for _, check := range []string{"request-header-ca", "watch-caches"} {
		if body := raw(t, stack.OmniAPIServer.URL(), "/readyz/"+check, ""); string(body) != "ok" {
			t.Errorf("%s: %s", check, body)
		}
	}
}
