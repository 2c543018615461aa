package contract

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"sigs.k8s.io/yaml"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/client/management"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// anyText is the body of an answer whose text comes from the JWT library.
const anyText = "*"

// proxy tests the Kubernetes proxy's answers without a workload cluster: the cluster has no machines, so the proxy
// forwards no request.
func (s *suite) proxy(t *testing.T) {
	cluster := newCluster(unique("proxy"))
	s.create(t, cluster)
	s.settle(t, cluster)

	_, key := s.account(t, "Operator")
	operator, name := s.connect(t, key), cluster.Metadata().ID()

	server, token := s.access(t, operator, name, time.Hour, "deployers")
	_, groupless := s.access(t, operator, name, time.Hour)
	_, expired := s.access(t, operator, name, time.Second, "deployers")

	time.Sleep(2 * time.Second)

	robot := "Bearer " + token
	admin := http.Header{"Impersonate-User": {"system:admin"}, "Impersonate-Group": {"system:masters"}, "Impersonate-Extra-Scopes": {"all"}}
	front := http.Header{"X-Remote-User": {"system:admin"}, "X-Remote-Group": {"system:masters"}}

	for _, test := range []struct {
		name, authorization string
		headers             http.Header
		code                int
		body                string
	}{
		{"no token", "", nil, http.StatusUnauthorized, ""},
		{"no token, in the name of an admin", "", admin, http.StatusUnauthorized, ""},
		{"no token, as another proxy would ask", "", front, http.StatusUnauthorized, ""},
		{"no scheme", token, nil, http.StatusUnauthorized, ""},
		{"small letters", "bearer " + token, nil, http.StatusUnauthorized, ""},
		{"password", "Basic cm9ib3Q6cm9ib3Q=", nil, http.StatusUnauthorized, ""},
		{"rubbish", "Bearer rubbish", nil, http.StatusUnauthorized, anyText},
		{"rubbish, in the name of an admin", "Bearer rubbish", admin, http.StatusUnauthorized, anyText},
		{"wrong signature", "Bearer " + damaged(token), nil, http.StatusUnauthorized, anyText},
		{"signed by somebody else", "Bearer " + forged(t, token), nil, http.StatusUnauthorized, anyText},
		{"not signed", "Bearer " + unsigned(t, token), nil, http.StatusUnauthorized, anyText},
		{"expired", "Bearer " + expired, nil, http.StatusUnauthorized, anyText},
		{"no groups", "Bearer " + groupless, nil, http.StatusUnauthorized, anyText},
		{"cluster does not run", robot, nil, http.StatusBadGateway, "proxy error"},
		{"cluster does not run, in the name of an admin", robot, admin, http.StatusBadGateway, "proxy error"},
		{"cluster does not run, as another proxy would ask", robot, front, http.StatusBadGateway, "proxy error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, body := s.askProxy(t, server, test.authorization, test.headers)
			if code != test.code || test.body != anyText && body != test.body || test.body == anyText && body == "" {
				t.Errorf("%d %q, want %d %q", code, body, test.code, test.body)
			}
		})
	}

	s.remove(t, cluster.Metadata())

	t.Run("cluster is gone", func(t *testing.T) {
		s.gone(t, omni.NewClusterUUID(name).Metadata())
		s.eventually(t, "500 for a cluster that is gone", func() bool {
			code, body := s.askProxy(t, server, robot, nil)

			return code == http.StatusInternalServerError && body == ""
		})
	})

	again := newCluster(name)
	s.create(t, again)
	s.settle(t, again)

	t.Run("cluster was made again", func(t *testing.T) {
		if code, body := s.askProxy(t, server, robot, nil); code != http.StatusForbidden || body != "" {
			t.Errorf("the old token: %d %q, want 403", code, body)
		}

		_, fresh := s.access(t, operator, name, time.Hour, "deployers")
		if code, _ := s.askProxy(t, server, "Bearer "+fresh, nil); code != http.StatusBadGateway {
			t.Errorf("a new token: %d, want 502", code)
		}
	})

	s.remove(t, again.Metadata())
}

// access requests a kubeconfig for the user robot, and returns its server and token.
func (s *suite) access(t *testing.T, c *client.Client, cluster string, ttl time.Duration, groups ...string) (server, token string) {
	t.Helper()

	raw, err := c.Management().WithCluster(cluster).Kubeconfig(deadline(t), management.WithServiceAccount(ttl, "robot", groups...))
	if err != nil {
		t.Fatal(err)
	}

	var config kubeconfig
	if err := yaml.Unmarshal(raw, &config); err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
		t.Fatal("the kubeconfig has not one cluster and one user")
	}

	server, _ = config.Clusters[0].Cluster["server"].(string)
	token, _ = config.Users[0].User["token"].(string)

	return server, token
}

// damaged changes the signature at its first character, all of whose bits count.
func damaged(token string) string {
	signature := strings.LastIndex(token, ".") + 1
	other := "A"

	if token[signature] == 'A' {
		other = "B"
	}

	return token[:signature] + other + token[signature+1:]
}

// forged returns a token with the same claims and key ID, signed with another key.
func forged(t *testing.T, token string) string {
	t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}

	return signedAgain(t, token, jwt.SigningMethodRS256, key)
}

// unsigned returns a token with the same claims, under the algorithm none.
func unsigned(t *testing.T, token string) string {
	t.Helper()

	return signedAgain(t, token, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
}

func signedAgain(t *testing.T, token string, method jwt.SigningMethod, key any) string {
	t.Helper()

	claims := jwt.MapClaims{}

	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	if err != nil {
		t.Fatal("the token cannot be parsed")
	}

	made := jwt.NewWithClaims(method, claims)
	made.Header["kid"] = parsed.Header["kid"]

	signed, err := made.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}

	return signed
}

// askProxy returns the answer to a request; the CA of the target signs the proxy's certificate.
func (s *suite) askProxy(t *testing.T, server, authorization string, headers http.Header) (int, string) {
	t.Helper()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.target.CA)

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()

	request, err := http.NewRequestWithContext(deadline(t), http.MethodGet, server+"/api", nil)
	if err != nil {
		t.Fatal(err)
	}

	maps.Copy(request.Header, headers)

	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}

	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, strings.TrimSpace(string(body))
}
