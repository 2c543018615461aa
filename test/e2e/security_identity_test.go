package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nobody becomes somebody else: neither past the hub, by any credentials that are not the front proxy's, nor through
// it. Who the server took the caller for is in the text of the refusal.

// claims are headers that say the caller is an administrator.
func claims() http.Header {
	return http.Header{
		"X-Remote-User": {"hub-admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"0"},
		"X-Remote-Extra-Scopes": {"all"}, "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id": {"x"},
	}
}

// with are the headers and more.
func with(headers http.Header, key string, values ...string) http.Header {
	more := maps.Clone(headers)
	more[key] = values

	return more
}

// clientOf presents a certificate, if it gets one. Without HTTP/2 a client can send any header.
func clientOf(pair ...tls.Certificate) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: hubRoots(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(pair) == 0 {
				return &tls.Certificate{}, nil
			}

			return &pair[0], nil // also one that no authority of the server's issued
		}},
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}

	return &http.Client{Timeout: 30 * time.Second, Transport: transport}
}

// answer is the status of a GET, and the message of a refusal or whatever else there is.
func (s *space) answer(client *http.Client, url string, header http.Header) (int, string) {
	s.t.Helper()

	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}

	request.Header = header

	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()

	body := must(readSome(answer.Body))(s.t)

	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Message == "" {
		return answer.StatusCode, string(body)
	}

	return answer.StatusCode, status.Message
}

// certificateOf is the client certificate of a user whom the hub knows.
func certificateOf(t *testing.T, user string, groups ...string) tls.Certificate {
	t.Helper()

	config := must(stack.RESTConfigFor(user, groups...))(t)

	return must(tls.X509KeyPair(config.CertData, config.KeyData))(t)
}

// tokenOf is a token of a new ServiceAccount without rights, as the hub issues it.
func (s *space) tokenOf(account string) string {
	s.t.Helper()
	s.run("create", "serviceaccount", account)

	request, err := stack.Client().CoreV1().ServiceAccounts(s.name).CreateToken(s.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}

	return request.Status.Token
}

func TestIdentityCannotBeForgedPastTheHub(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	alice := s.user("alice")
	frontProxy := must(tls.X509KeyPair(stack.Hub.FrontProxyClient()))(t)

	certificate, key, err := stack.Hub.FrontProxyClientNamed("somebody-else")
	if err != nil {
		t.Fatal(err)
	}

	otherName := must(tls.X509KeyPair(certificate, key))(t)
	bearer := http.Header{"Authorization": {"Bearer " + s.tokenOf("robot")}}
	robot := `User "system:serviceaccount:` + s.name + `:robot" cannot list`

	for _, tc := range []struct {
		name   string
		client *http.Client
		header http.Header
		status int
		text   string
	}{
		{"claims alone", clientOf(), claims(), 401, "Unauthorized"},
		{"claims, a certificate of nobody's authority", clientOf(selfSigned(t)), claims(), 401, "Unauthorized"},
		{"claims, the proxy's authority, another name", clientOf(otherName), claims(), 401, "Unauthorized"},
		{"claims, the proxy's name, the hub's other authority", clientOf(certificateOf(t, "front-proxy-client")), claims(), 403, `User "front-proxy-client" cannot list`},
		{"claims of a user", clientOf(certificateOf(t, alice)), claims(), 403, `User "` + alice + `" cannot list`},
		{"claims of a token", clientOf(), with(claims(), "Authorization", bearer["Authorization"]...), 403, robot},
		{"a token", clientOf(), bearer, 403, robot},
		{"a token that was changed", clientOf(), http.Header{"Authorization": {bearer.Get("Authorization") + "x"}}, 401, "Unauthorized"},
		{"the proxy for nobody", clientOf(frontProxy), http.Header{"X-Remote-Group": {"system:masters"}}, 401, "Unauthorized"},
		{"the proxy for an empty name", clientOf(frontProxy), with(claims(), "X-Remote-User", ""), 401, "Unauthorized"},
		{"the proxy for an anonymous user of the hub", clientOf(frontProxy), http.Header{"X-Remote-User": {"system:anonymous"}, "X-Remote-Group": {"system:unauthenticated"}}, 403, `User "system:anonymous" cannot list`},
		{"the proxy for a user, and a token", clientOf(frontProxy), with(bearer, "X-Remote-User", alice), 403, `User "` + alice + `" cannot list`},
		{"a user as an administrator", clientOf(certificateOf(t, alice)), http.Header{"Impersonate-User": {"hub-admin"}, "Impersonate-Group": {"system:masters"}}, 403, `User "` + alice + `" cannot impersonate`},
		{"a token as a group alone", clientOf(), with(bearer, "Impersonate-Group", "system:masters"), 400, "without impersonating a user"},
		{"an administrator as a user", clientOf(certificateOf(t, "root", "system:masters")), http.Header{"Impersonate-User": {alice}}, 403, `User "` + alice + `" cannot list`},
		{"the proxy for a user as an administrator", clientOf(frontProxy), http.Header{"X-Remote-User": {alice}, "Impersonate-User": {"hub-admin"}, "Impersonate-Group": {"system:masters"}}, 403, `User "` + alice + `" cannot impersonate`},
		{"the proxy for an administrator as a user", clientOf(frontProxy), with(claims(), "Impersonate-User", alice), 403, `User "` + alice + `" cannot list`},
	} {
		status, text := s.answer(tc.client, stack.OmniAPIServer.URL()+s.path("omniclusters"), tc.header)
		if status != tc.status || !strings.Contains(text, tc.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", tc.name, status, tc.status, tc.text, text)
		}
	}
}

// The hub sends its own headers on, whatever its client sent.
func TestIdentityCannotBeSmuggledThroughTheHub(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	alice := s.user("alice")
	client := clientOf(certificateOf(t, alice))
	bind(t, s.name, "view", subjectUser(alice))

	list := stack.Hub.URL() + s.path("omniclusters")
	s.wait("the right to read", func() error {
		status, text := s.answer(client, list, nil)

		return expectStatus(status, 200, text)
	})

	template := list + "/x/template"

	for name, header := range map[string]http.Header{
		"nothing": {},
		"claims":  claims(),
		"claims that are named as headers of the connection": with(claims(), "Connection", "X-Remote-User, X-Remote-Group, X-Remote-Uid"),
		"claims in other letters":                            {"x-remote-user": {"hub-admin"}, "X-REMOTE-GROUP": {"system:masters"}},
		"claims with underscores":                            {"X_Remote_User": {"hub-admin"}, "X_Remote_Group": {"system:masters"}},
		"an upgrade":                                         with(with(claims(), "Connection", "Upgrade"), "Upgrade", "websocket"),
	} {
		if status, text := s.answer(client, template, header); status != 403 || !strings.Contains(text, `User "`+alice+`" cannot get`) {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}

	for name, header := range map[string]http.Header{
		"impersonation":                  {"Impersonate-User": {"hub-admin"}, "Impersonate-Group": {"system:masters"}},
		"impersonation and claims":       with(claims(), "Impersonate-User", "hub-admin"),
		"impersonation of a group alone": {"Impersonate-Group": {"system:masters"}},
		"impersonation of an extra":      {"Impersonate-Extra-Scopes": {"all"}},
	} {
		if status, text := s.answer(client, list, header); status < 400 || strings.Contains(text, "hub-admin\" cannot list") {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}
}

func expectStatus(got, want int, text string) error {
	if got != want {
		return fmt.Errorf("status %d, want %d: %s", got, want, text)
	}

	return nil
}
