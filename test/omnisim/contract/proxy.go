package contract

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// proxyAnswers: what the Kubernetes proxy says without a workload cluster. The kubeconfigs are
// for a cluster that has no machines; the second has a token without groups.
func (s *suite) proxyAnswers(t *testing.T, raw, groupless []byte) {
	server, token := readAccess(t, raw)
	_, grouplessToken := readAccess(t, groupless)

	// The signature is the last part; its first character always counts in full.
	signature := strings.LastIndex(token, ".") + 1
	other := "A"

	if token[signature] == 'A' {
		other = "B"
	}

	for _, test := range []struct {
		name, token string
		codes       []int
	}{
		{"no token", "", []int{http.StatusUnauthorized}},
		{"rubbish", "rubbish", []int{http.StatusUnauthorized}},
		{"wrong signature", token[:signature] + other + token[signature+1:], []int{http.StatusUnauthorized}},
		{"no groups", grouplessToken, []int{http.StatusUnauthorized}},
		{"no healthy API", token, []int{http.StatusInternalServerError, http.StatusBadGateway}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.askProxy(t, server, test.token)
			for _, code := range test.codes {
				if got == code {
					return
				}
			}

			t.Errorf("status %d, want one of %v", got, test.codes)
		})
	}
}

func readAccess(t *testing.T, raw []byte) (server, token string) {
	t.Helper()

	var config kubeconfig
	if err := yaml.Unmarshal(raw, &config); err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
		t.Fatal("the kubeconfig has not one cluster and one user")
	}

	server, _ = config.Clusters[0].Cluster["server"].(string)
	token, _ = config.Users[0].User["token"].(string)

	return server, token
}

// askProxy returns the status of a request, whose certificate the CA of the target signs.
func (s *suite) askProxy(t *testing.T, server, token string) int {
	t.Helper()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.target.CA)

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()

	request, err := http.NewRequestWithContext(deadline(t), http.MethodGet, server+"/api", nil)
	if err != nil {
		t.Fatal(err)
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	_, _ = io.Copy(io.Discard, response.Body)

	return response.StatusCode
}
