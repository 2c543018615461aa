package clusteraccess

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Whatever a server, a proxy or a library says: no credential of the kubeconfig gets into a message, in the form in which it is
// kept or in that in which it is sent.
func TestNoCredentialIsShown(t *testing.T) {
	const server = "server: 'https://workload.example.com:6443'"

	basic := func(name, password string) string {
		return base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
	}

	for name, test := range map[string]struct {
		cluster, user string
		said          []string
	}{
		"a token":    {server, "token: s3cret-token-of-it", []string{"s3cret-token-of-it", "Bearer s3cret-token-of-it"}},
		"a password": {server, "username: me, password: s3cret-password", []string{"s3cret-password", "Basic " + basic("me", "s3cret-password")}},
		"a proxy's password": {
			server + ", proxy-url: 'http://me:s3cret%2Fproxy@proxy:3128'", "token: other-token-of-it",
			[]string{"http://me:s3cret%2Fproxy@proxy:3128", "s3cret/proxy", "Basic " + basic("me", "s3cret/proxy"), "other-token-of-it"},
		},
		"a short password of a proxy": {
			server + ", proxy-url: 'http://proxyuser:s3c@proxy:3128'", "token: other-token-of-it", []string{"proxyuser:s3c", "Basic " + basic("proxyuser", "s3c")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := get(t, NewClusters(nil, loopback()), kubeconfig(test.cluster, test.user))

			for _, said := range test.said {
				for _, text := range []string{cluster.Scrub("it said " + said + "."), cluster.Message(fmt.Errorf("it said %s.", said))} {
					if !strings.Contains(text, "[removed]") || strings.Contains(text, "s3c") || strings.Contains(text, strings.TrimPrefix(said, "Basic ")) {
						t.Errorf("%q became %q", said, text)
					}
				}
			}
		})
	}
}

// What a request sends is a secret, too, if its sender says so: a webhook may quote the Secret that it denies.
func TestNothingThatWasSentIsShown(t *testing.T) {
	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://workload.example.com:6443'", "token: s3cret-token-of-it"))
	err := fmt.Errorf("denied: %s, %s and %s", "s3cret-token-of-it", "hunter2-the-first", "tr0ubadour/second")

	got := cluster.Message(err, redact.Of("hunter2-the-first"), redact.Of("tr0ubadour/second"))
	if !strings.HasSuffix(got, "denied: [removed], [removed] and [removed]") {
		t.Errorf("got %q", got)
	}

	// The next request sent something else.
	if got := cluster.Message(err); !strings.Contains(got, "hunter2") || strings.Contains(got, "s3cret") {
		t.Errorf("got %q", got)
	}
}

// Credentials that are not accepted have expired only if the token says so.
func TestMessageAboutAnExpiredToken(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	for name, test := range map[string]struct {
		claims string
		want   string
	}{
		"expired":     {fmt.Sprintf(`{"exp":%d}`, now.Add(-time.Hour).Unix()), "the token of the kubeconfig expired at 2026-01-01T11:00:00Z"},
		"still valid": {fmt.Sprintf(`{"exp":%d}`, now.Add(time.Hour).Unix()), "does not accept the credentials"},
		"unknown":     {`{}`, "does not accept the credentials"},
	} {
		token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(test.claims)) + ".c2ln"
		cluster := get(t, NewClusters(func() time.Time { return now }, loopback()), kubeconfig("server: 'https://workload.example.com:6443'", "token: "+token))

		if got := cluster.Message(apierrors.NewUnauthorized("no")); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
