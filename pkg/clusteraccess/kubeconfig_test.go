package clusteraccess

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfig returns a kubeconfig with the given lines for cluster and user.
func kubeconfig(cluster, user string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it, namespace: elsewhere}}]
clusters: [{name: it, cluster: {` + cluster + `}}]
users: [{name: it, user: {` + user + `}}]
`)
}

func TestParseRefuses(t *testing.T) {
	const server, token = "server: 'https://workload.example.com:6443'", "token: s3cret-token"

	for _, test := range []struct {
		name          string
		cluster, user string
		want          error
		field         string
	}{
		{"exec", server, token + ", exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", ErrUnsafe, "user.exec"},
		{"auth-provider", server, token + ", auth-provider: {name: gcp}", ErrUnsafe, "user.auth-provider"},
		{"tokenFile", server, "tokenFile: /var/run/secrets/token", ErrUnsafe, "user.tokenFile"},
		{"client certificate file", server, "client-certificate: /etc/crt, client-key-data: YQ==", ErrUnsafe, "user.client-certificate"},
		{"client key file", server, "client-certificate-data: YQ==, client-key: /etc/key", ErrUnsafe, "user.client-key"},
		{"CA file", server + ", certificate-authority: /etc/ca", token, ErrUnsafe, "cluster.certificate-authority"},
		{"insecure", server + ", insecure-skip-tls-verify: true", token, ErrUnsafe, "cluster.insecure-skip-tls-verify"},
		{"impersonation", server, token + ", as: admin", ErrUnsafe, "user.as"},
		{"impersonated groups", server, token + ", as-groups: ['system:masters']", ErrUnsafe, "user.as"},
		{"plain http", "server: 'http://workload.example.com'", token, ErrUnsafe, "cluster.server"},
		{"no server", "", token, ErrInvalid, "cluster.server"},
		{"server without host", "server: /path", token, ErrInvalid, "cluster.server"},
		{"user information", "server: 'https://me:pass@workload.example.com'", token, ErrInvalid, "cluster.server"},
		{"socks proxy", server + ", proxy-url: 'socks5://proxy:1080'", token, ErrInvalid, "cluster.proxy-url"},
		{"CA that is none", server + ", certificate-authority-data: YQ==", token, ErrInvalid, "cluster.certificate-authority-data"},
		{"pair that is none", server, "client-certificate-data: YQ==, client-key-data: YQ==", ErrInvalid, "user.client-certificate-data"},
		{"no credentials", server, "", ErrInvalid, "the user has no token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(t.Context(), kubeconfig(test.cluster, test.user))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("got %v, want %v about %s", err, test.want, test.field)
			}

			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestParseRefusesWhatIsNoKubeconfig(t *testing.T) {
	for name, content := range map[string]string{
		"empty":              "",
		"text":               "s3cret",
		"list":               "- s3cret",
		"wrong type":         "users: s3cret",
		"too large":          strings.Repeat("# s3cret\n", maxKubeconfig/8),
		"no context":         "apiVersion: v1\nkind: Config\n",
		"context not there":  "current-context: s3cret\n",
		"cluster not there":  "contexts: [{name: it, context: {cluster: s3cret, user: it}}]\n",
		"base64 once more":   base64.StdEncoding.EncodeToString(kubeconfig("server: 'https://h'", "token: s3cret")),
		"wrong base64 in CA": string(kubeconfig("certificate-authority-data: s3cret!", "")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t.Context(), []byte(content))
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}

			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the content: %v", err)
			}
		})
	}
}

func TestParseTakesOverTheAllowList(t *testing.T) {
	found, err := parse(t.Context(), kubeconfig("server: 'https://workload.example.com:6443/k8s/clusters/c-1', tls-server-name: api.internal, proxy-url: 'http://proxy:3128'",
		"token: s3cret-token"))
	if err != nil {
		t.Fatal(err)
	}

	if found.server != "https://workload.example.com:6443/k8s/clusters/c-1" || found.serverName != "api.internal" ||
		found.token != "s3cret-token" || found.proxy.String() != "http://proxy:3128" {
		t.Errorf("server %q, server name %q, proxy %v", found.server, found.serverName, found.proxy)
	}
}

func TestParseTakesTheOnlyContext(t *testing.T) {
	config := strings.Replace(string(kubeconfig("server: 'https://h'", "token: t")), "current-context: it\n", "", 1)
	if _, err := parse(t.Context(), []byte(config)); err != nil {
		t.Error(err)
	}
}

// TestExecIsNeverRun uses a program that would create a file.
func TestExecIsNeverRun(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "ran")
	clusters := NewClusters(nil, loopback())

	_, err := clusters.Get(t.Context(), Key{SecretKey: "kubeconfig"}, kubeconfig("server: 'https://127.0.0.1:1'",
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['"+canary+"'], interactiveMode: Never}"))
	if !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}

	if _, err := os.Stat(canary); !os.IsNotExist(err) {
		t.Errorf("the program ran: %v", err)
	}
}
