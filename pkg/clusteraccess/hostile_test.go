package clusteraccess

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestParseSeesEveryForm uses forms of YAML and JSON in which a field could bypass the allow-list.
func TestParseSeesEveryForm(t *testing.T) {
	const rest = "contexts: [{name: it, context: {cluster: it, user: it}}]\ncurrent-context: it\n"

	exec := `{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}`
	cluster := "clusters: [{name: it, cluster: {server: 'https://h'}}]\n"

	for _, test := range []struct {
		name, content string
		want          error // nil: it is accepted
	}{
		{"merge key", "x: &x {exec: " + exec + "}\n" + cluster + rest + "users: [{name: it, user: {<<: *x, token: s3cret}}]\n", ErrUnsafe},
		{"anchor", "x: &x " + exec + "\n" + cluster + rest + "users: [{name: it, user: {exec: *x, token: s3cret}}]\n", ErrUnsafe},
		{"duplicate key, bad last", cluster + rest + "users: [{name: it, user: {token: s3cret, exec: null, exec: " + exec + "}}]\n", ErrUnsafe},
		{"duplicate key, harmless last", cluster + rest + "users: [{name: it, user: {token: t, exec: " + exec + ", exec: null}}]\n", nil},
		{"two users of one name", cluster + rest + "users: [{name: it, user: {token: s3cret}}, {name: it, user: {exec: " + exec + "}}]\n", ErrInvalid},
		{"two contexts of one name", cluster + "users: [{name: it, user: {token: s3cret}}]\n" + rest + "contexts: []\n", ErrInvalid},
		{"JSON", `{"clusters":[{"name":"it","cluster":{"server":"https://h"}}],"contexts":[{"name":"it","context":{"cluster":"it","user":"it"}}],` +
			`"current-context":"it","users":[{"name":"it","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}}}]}`, ErrUnsafe},
		{"exec null", cluster + rest + "users: [{name: it, user: {token: t, exec: null}}]\n", nil},
		{"exec of another user", cluster + rest + "users: [{name: it, user: {token: t}}, {name: other, user: {exec: " + exec + "}}]\n", nil},
		{"extensions", cluster + rest + "users: [{name: it, user: {token: t, extensions: [{name: e, extension: {exec: " + exec + "}}]}}]\n", nil},
		{"line break in the token", cluster + rest + "users: [{name: it, user: {token: \"s3cret\\nX: y\"}}]\n", ErrInvalid},
		{"extra of impersonation", cluster + rest + "users: [{name: it, user: {token: t, as-user-extra: {a: [b]}}}]\n", ErrUnsafe},
		{"aliases of aliases", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(t.Context(), []byte(test.content))
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}

			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestServerIsShownWithoutQuery(t *testing.T) {
	for server, want := range map[string]string{
		"https://h:6443/k8s?key=s3cret#s3cret": "https://h:6443/k8s",
		"https://h?cluster=demo":               "https://h",
		"https://[fd00::1]:6443":               "https://[fd00::1]:6443",
	} {
		if got := get(t, NewClusters(nil, loopback()), kubeconfig("server: '"+server+"'", "token: t")).Server(); got != want {
			t.Errorf("%s became %s, want %s", server, got, want)
		}
	}
}

// TestEchoedCredentialsAreRemoved uses a server that echoes the credentials, in a status and as text.
func TestEchoedCredentialsAreRemoved(t *testing.T) {
	for name, user := range map[string]string{"token": "token: s3cret-token", "password": "username: me, password: s3cret-password"} {
		for _, form := range []string{"status", "text", "cut text"} {
			t.Run(name+" in a "+form, func(t *testing.T) {
				config := serve(t, func(w http.ResponseWriter, r *http.Request) {
					sent := r.Header.Get("Authorization")

					switch form {
					case "status":
						respond(w, 400, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":%q}`, sent))
					case "cut text": // client-go shows 2 KiB of a text; all but the last byte of the credential
						sent = strings.Repeat(" ", 2048-len(sent)+1) + sent

						fallthrough
					default:
						w.WriteHeader(http.StatusBadGateway)
						_, _ = w.Write([]byte(sent))
					}
				})
				cluster := get(t, NewClusters(nil, loopback()), []byte(strings.Replace(string(config), "token: s3cret-token", user, 1)))

				_, err := identifyFinally(t, cluster)
				if err == nil {
					t.Fatal("no error")
				}

				message := cluster.Message(err)
				if strings.Contains(message, "s3cret") || strings.Contains(message, base64.StdEncoding.EncodeToString([]byte("me:s3cret-password"))[:20]) {
					t.Errorf("the message shows the credentials: %s", message)
				}
			})
		}
	}
}

// TestManyObjectsOfADeadCluster checks that two hundred objects of one cluster that never answers cost a worker one
// wait per probe, not one each.
func TestManyObjectsOfADeadCluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://"+listener.Addr().String()+"'", "token: t"))
	waited := 0

	for range 200 {
		began := time.Now()

		if _, err := cluster.Identify(t.Context()); !errors.Is(err, ErrProbing) {
			t.Fatalf("got %v, want ErrProbing", err)
		}

		if time.Since(began) >= probeWait {
			waited++
		}
	}

	// If each waited, it would be 200 times. On a busy machine one may take as long without waiting.
	if waited > 10 {
		t.Errorf("one worker waited %d times", waited)
	}
}

func TestUnusedClustersAreDropped(t *testing.T) {
	now := time.Now()
	clusters := NewClusters(func() time.Time { return now }, loopback())
	get(t, clusters, kubeconfig("server: 'https://one'", "token: t"))

	now = now.Add(unusedFor)

	if _, err := clusters.Get(t.Context(), Key{NamespacedName: types.NamespacedName{Name: "other"}}, kubeconfig("server: 'https://two'", "token: t")); err != nil {
		t.Fatal(err)
	}

	if len(clusters.entries) != 1 {
		t.Errorf("%d kubeconfigs are kept, want 1", len(clusters.entries))
	}
}
