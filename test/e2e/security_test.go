package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// hubRoots trusts the servers of the test's hub.
func hubRoots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(stack.Hub.CA())

	return roots
}

// Old versions of TLS and weak ciphers are refused in the handshake.
func TestTLSOfTheServer(t *testing.T) {
	t.Parallel()

	address := strings.TrimPrefix(stack.OmniAPIServer.URL(), "https://")

	for _, tc := range []struct {
		name    string
		version uint16
		ciphers []uint16
		want    bool
	}{
		{"TLS 1.0", tls.VersionTLS10, nil, false},
		{"TLS 1.1", tls.VersionTLS11, nil, false},
		{"TLS 1.2", tls.VersionTLS12, nil, true},
		{"TLS 1.3", tls.VersionTLS13, nil, true},
		{"TLS 1.2 with RC4", tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, tls.TLS_RSA_WITH_RC4_128_SHA}, false},
		{"TLS 1.2 with 3DES", tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA}, false},
		{"TLS 1.2 without forward secrecy", tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_CBC_SHA}, false},
		{"TLS 1.2 with AES-GCM", tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, true},
		{"TLS 1.2 with ChaCha20", tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := (&tls.Dialer{
				NetDialer: &net.Dialer{Timeout: 10 * time.Second},
				Config:    &tls.Config{RootCAs: hubRoots(), MinVersion: tc.version, MaxVersion: tc.version, CipherSuites: tc.ciphers},
			}).DialContext(t.Context(), "tcp", address)
			if err == nil {
				defer conn.Close()
			}

			if (err == nil) != tc.want {
				t.Errorf("handshake: %v, want success=%t", err, tc.want)
			}

			// What fails has to be the server's refusal, not this test's own.
			if err != nil && !strings.Contains(err.Error(), "remote error: tls:") {
				t.Errorf("not refused by the server: %v", err)
			}
		})
	}
}

// Without a name only the health endpoints answer, here and through the hub.
func TestAnonymousSeesHealthOnly(t *testing.T) {
	t.Parallel()

	anonymous := anonymousClient()

	const group = "/apis/omni.texashpc.com"

	direct, hub := stack.OmniAPIServer.URL(), stack.Hub.URL()

	for url, want := range map[string]int{
		direct + "/livez": 200, direct + "/readyz": 200, direct + "/readyz?verbose": 200, direct + "/healthz": 200,
		// Single checks are for users whom the hub lets see them.
		direct + "/livez/ping": 403, direct + "/readyz/watch-caches": 403, direct + "/livez/../apis": 403,

		direct + "/": 401, direct + "/version": 401, direct + "/apis": 401, direct + group: 401, direct + group + "/v1alpha1": 401,
		direct + "/openapi/v2": 401, direct + "/openapi/v3": 401, direct + "/metrics": 401, direct + "/metrics/slis": 401,
		direct + "/debug/pprof/": 401, direct + "/debug/pprof/heap": 401, direct + "/debug/flags/v": 401, direct + "/debug/api_priority_and_fairness/dump_requests": 401,
		direct + "/statusz": 401, direct + "/flagz": 401, direct + "/configz": 401,
		direct + group + "/v1alpha1/omniclusters":                               401,
		direct + group + "/v1alpha1/namespaces/default/omniclusters/x/template": 401,
		direct + "//apis": 401, direct + "/readyzz": 401,

		hub + group: 403, hub + group + "/v1alpha1": 403, hub + group + "/v1alpha1/omniclusters": 403,
		hub + group + "/v1alpha1/namespaces/default/omniclusters/x/template": 403,
	} {
		if got := statusOf(t, anonymous, url, nil); got != want {
			t.Errorf("%s: status %d, want %d", url, got, want)
		}
	}
}

// anonymousClient has neither certificate nor token.
func anonymousClient() *http.Client {
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: hubRoots()}},
	}
}

// statusOf is the status of a GET, without following redirects.
func statusOf(t *testing.T, client *http.Client, url string, header http.Header) int {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	for key, values := range header {
		request.Header[key] = values
	}

	quiet := *client
	quiet.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	answer, err := quiet.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	return answer.StatusCode
}

// userPolicy refuses to create the OmniConnection "who" and says who asked: the answer is what the server
// believes of the caller.
const userPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE], resources: [omniconnections]}]}
  validations:
  - expression: "object.metadata.name != 'who'"
    messageExpression: "'user=' + request.userInfo.username + ' uid=' + (has(request.userInfo.uid) ? request.userInfo.uid : '') + ' groups=' + string(size(request.userInfo.groups)) + ' extra=' + (has(request.userInfo.extra) && 'team' in request.userInfo.extra ? request.userInfo.extra['team'][0] : '') + ';'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}}`

// Whoever asks through the hub is the one whom the hub says: name, UID, groups and extras; and an
// impersonator has the rights of the impersonated.
func TestIdentityThroughTheHub(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.applyCluster(userPolicy, "validatingadmissionpolicy", "validatingadmissionpolicybinding")

	who := func(config *rest.Config) error {
		_, err := dynamicFor(t, config).Resource(subjects[0].gvr()).Namespace(s.name).
			Create(t.Context(), subjects[0].object(t, "who"), metav1.CreateOptions{DryRun: dryRun})

		return err
	}

	s.wait("the policy to apply", func() error {
		if err := who(stack.RESTConfig()); err == nil || !strings.Contains(err.Error(), "user=hub-admin uid=") {
			return fmt.Errorf("not refused: %w", err)
		}

		return nil
	})

	impersonating := stack.RESTConfig()
	impersonating.Impersonate = rest.ImpersonationConfig{
		UserName: "alice", UID: "4711", Groups: []string{"system:masters"}, Extra: map[string][]string{"team": {"red"}},
	}

	if err := who(impersonating); err == nil || !strings.Contains(err.Error(), "user=alice uid=4711 groups=2 extra=red;") {
		t.Errorf("impersonated: %v", err)
	}

	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "nobody-at-all"}
	if err := who(impersonating); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"nobody-at-all"`) {
		t.Errorf("impersonated without rights: %v", err)
	}

	s.checkFrontProxy()
}

// checkFrontProxy asks past the hub: with the front proxy's certificate headers are believed, the UID too.
func (s *space) checkFrontProxy() {
	s.t.Helper()

	pair, err := tls.X509KeyPair(stack.Hub.FrontProxyClient())
	if err != nil {
		s.t.Fatal(err)
	}

	body := subjects[0].manifest(s.t, "who")
	headers := http.Header{
		"X-Remote-User": {"bob"}, "X-Remote-Uid": {"0815"}, "X-Remote-Group": {"system:masters"},
		"X-Remote-Extra-Team": {"blue"}, "Content-Type": {"application/json"},
	}

	for certificate, want := range map[string]string{"front proxy": "user=bob uid=0815 groups=2 extra=blue;", "none": "Unauthorized"} {
		config := &tls.Config{RootCAs: hubRoots()}
		if certificate == "front proxy" {
			config.Certificates = []tls.Certificate{pair}
		}

		client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}
		if got := s.post(client, stack.OmniAPIServer.URL()+s.path(subjects[0].resource)+"?dryRun=All", body, headers); !strings.Contains(got, want) {
			s.t.Errorf("directly with the certificate of %s: %s, want %q", certificate, got, want)
		}
	}
}

func (s *space) post(client *http.Client, url, body string, header http.Header) string {
	s.t.Helper()

	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}

	request.Header = header

	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()

	return string(must(readSome(answer.Body))(s.t))
}

// applyCluster applies objects outside of namespaces, with the name of the space as theirs, and deletes
// those of the kinds with the test.
func (s *space) applyCluster(manifest string, kinds ...string) {
	s.t.Helper()
	s.apply(strings.ReplaceAll(manifest, "SPACE", s.name))

	s.t.Cleanup(func() {
		args := []string{"delete", "--ignore-not-found"}
		for _, kind := range slices.Backward(kinds) {
			args = append(args, kind+"/"+s.name)
		}

		if _, _, err := stack.Kubectl(context.WithoutCancel(s.t.Context()), args...); err != nil {
			s.t.Error(err)
		}
	})
}
