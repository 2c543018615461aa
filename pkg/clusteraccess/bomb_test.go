package clusteraccess

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// aliasBomb returns a kubeconfig in which one value occurs many times.
func aliasBomb(length, times int) []byte {
	return append(kubeconfig("server: 'https://h'", "token: t"),
		"preferences: {extensions: [{name: &a "+strings.Repeat("x", length)+", extension: {b: ["+strings.TrimSuffix(strings.Repeat("*a,", times), ",")+"]}}]}\n"...)
}

// large returns the kubeconfig of a user who has many clusters.
func large(clusters int) []byte {
	parts := [3]strings.Builder{}

	for i := range clusters {
		fmt.Fprintf(&parts[0], "- {name: c%d, context: {cluster: c%d, user: c%d, namespace: default}}\n", i, i, i)
		fmt.Fprintf(&parts[1], "- {name: c%d, cluster: {server: 'https://c%d.example.com:6443', tls-server-name: kubernetes}}\n", i, i)
		fmt.Fprintf(&parts[2], "- {name: c%d, user: {token: token-of-cluster-%d}}\n", i, i)
	}

	return []byte("current-context: c0\ncontexts:\n" + parts[0].String() + "clusters:\n" + parts[1].String() + "users:\n" + parts[2].String())
}

// TestKubeconfigThatBecomesLarge checks that a kubeconfig that grows when it is decoded is refused before, with the
// reason.
func TestKubeconfigThatBecomesLarge(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		says    string // empty: it is accepted
	}{
		"aliases of a long value": {aliasBomb(30_000, 8_000), "once its aliases are replaced"},
		"empty users":             {append(kubeconfig("server: 'https://h'", "token: t"), "users: ["+strings.Repeat("{},", 40_000)+"]\n"...), "more than 25000 values"},
		"a later document":        {append(append(kubeconfig("server: 'https://h'", "token: t"), "---\n"...), aliasBomb(30_000, 8_000)...), "once its aliases are replaced"},
		"deep":                    {append(kubeconfig("server: 'https://h'", "token: t"), "preferences: "+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"\n"...), "nested deeper"},
		"few aliases":             {aliasBomb(100, 10), ""},
		"five hundred contexts":   {large(500), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var err error

			foreigntest.WantAllocated(t, 96<<20, func() { _, err = parse(t.Context(), test.content) })

			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.says)):
				t.Errorf("got %v, want ErrInvalid that says %q", err, test.says)
			}
		})
	}
}

// TestAnInterruptedReadIsNotRemembered checks that an interrupted read stores no result for the kubeconfig.
func TestAnInterruptedReadIsNotRemembered(t *testing.T) {
	clusters := NewClusters(nil, loopback())
	gone, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := clusters.Get(gone, key(), kubeconfig("server: 'https://h'", "token: t")); err != nil && len(clusters.entries) > 0 {
		t.Errorf("%v is remembered", err)
	}

	get(t, clusters, kubeconfig("server: 'https://h'", "token: t"))
}

func TestClaimsAreBounded(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}

	for name, test := range map[string]struct{ claims, want string }{
		"Omni's":    {`{"cluster_uuid":"u","exp":1}`, "u"},
		"long":      {fmt.Sprintf(`{"cluster_uuid":"u","x":%q}`, strings.Repeat("x", 20_000)), ""},
		"many":      {`{"cluster_uuid":"u","x":[` + strings.Repeat("{},", 4_000) + `{}]}`, ""},
		"deep":      {`{"cluster_uuid":"u","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, ""},
		"YAML":      {"cluster_uuid: u\nx: [*a]\n", ""},
		"two texts": {`{"cluster_uuid":"u"}{"cluster_uuid":"v"}`, ""},
		"long ID":   {fmt.Sprintf(`{"cluster_uuid":%q}`, strings.Repeat("u", 8_000)), ""},
		"no ID":     {`{"cluster_uuid":"a\nb"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readClaims(token(test.claims)).ClusterUUID; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add(kubeconfig("server: 'https://h'", "token: t"))
	f.Add(kubeconfig("server: 'https://h', proxy-url: 'http://p:1'", "username: a, password: b"))
	f.Add(aliasBomb(200, 200))
	f.Add([]byte(`{"users":[{},{},{}],"contexts":[{"name":"a","context":{}}],"current-context":"a"}`))

	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 64<<10 {
			return
		}

		foreigntest.WantAllocated(t, 64<<20, func() {
			cluster, err := newCluster(t.Context(), content, nil, loopback())
			if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnsafe) {
				t.Errorf("an error of no kind: %v", err)
			}

			if (cluster == nil) != (err != nil) {
				t.Errorf("got %v, %v", cluster, err)
			}
		})
	})
}

func FuzzToken(f *testing.F) {
	f.Add("e30.eyJjbHVzdGVyX3V1aWQiOiJ1IiwiZXhwIjoxfQ.c2ln")
	f.Add("a.b.c")
	f.Add("..")

	f.Fuzz(func(t *testing.T, token string) {
		if len(token) > maxKubeconfig {
			return
		}

		foreigntest.WantAllocated(t, 8<<20, func() { _ = readClaims(token).expiry() })
	})
}
