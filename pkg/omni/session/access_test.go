package session

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestAccess checks that the role Reader is enough, and that Omni is called once.
func TestAccess(t *testing.T) {
	sim, session := issuingSession(t, omnisim.RoleReader)

	access, err := session.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if want := (Access{KubernetesProxyURL: sim.KubernetesProxyURL(), OIDCIssuerURL: sim.OIDCIssuerURL(), Account: "omni"}); access != want {
		t.Errorf("%+v, want %+v", access, want)
	}

	sim.Close()

	if again, err := session.Access(t.Context()); err != nil || again != access {
		t.Errorf("the second time: %+v %v", again, err)
	}
}

// TestAccessGivenUp: that a caller had no time left says nothing of Omni, so the next one asks.
func TestAccessGivenUp(t *testing.T) {
	_, session := issuingSession(t, omnisim.RoleReader)

	expired, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()

	if _, err := session.Access(expired); err == nil {
		t.Fatal("it is answered without time")
	}

	if access, err := session.Access(t.Context()); err != nil || access.Account == "" {
		t.Errorf("the next one: %+v %v", access, err)
	}
}

// TestAccessTooSlow: an Omni that takes longer than a caller has is not asked at every run. One whose caller was stopped meanwhile is.
func TestAccessTooSlow(t *testing.T) {
	for name, test := range map[string]struct {
		caller func() (context.Context, context.CancelFunc)
		asked  int32
	}{
		"no answer in time": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 200*time.Millisecond)
		}, 1},
		"stopped": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(200*time.Millisecond, cancel)

			return ctx, cancel
		}, 2},
	} {
		var asked atomic.Int32

		sim, session := issuingSession(t, omnisim.RoleReader)
		sim.Inject(omnisim.Fault{Method: "Kubeconfig", Hang: true, OnHit: func() { asked.Add(1) }})

		for range 2 {
			ctx, cancel := test.caller()
			if _, err := session.Access(ctx); err == nil {
				t.Errorf("%s: it is answered", name)
			}

			cancel()
		}

		if got := asked.Load(); got != test.asked {
			t.Errorf("%s: asked %d times, want %d", name, got, test.asked)
		}
	}
}

// TestAccessExpires: an Omni that was given other URLs is asked again in time, and also says them to a session that outlived that.
func TestAccessExpires(t *testing.T) {
	sim, session := issuingSession(t, omnisim.RoleReader)

	first, err := session.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	known := session.access.Load()
	if left := time.Until(known.until); left <= accessTerm-time.Minute || left > accessTerm {
		t.Errorf("it is kept for %s", left)
	}

	session.access.Store(&accessAnswer{access: Access{KubernetesProxyURL: "https://former.example.com"}, until: time.Now()})

	if again, err := session.Access(t.Context()); err != nil || again != first {
		t.Errorf("%+v %v, want %+v", again, err, first)
	}

	if calls := sim.Requests()[omnisim.Request{Method: omnisim.MethodKubeconfigForPeople}]; calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// forPeople is a kubeconfig for users as Omni issues it.
const forPeople = `apiVersion: v1
kind: Config
clusters: [{name: acme-access, cluster: {server: https://omni.example.com:8100}}]
contexts: [{name: acme-access, context: {cluster: acme-access, user: acme-access-robot, namespace: default}}]
current-context: acme-access
users:
- name: acme-access-robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: kubectl
      args: [oidc-login, get-token, --oidc-issuer-url=https://omni.example.com/oidc, --oidc-client-id=native, --oidc-extra-scope=cluster:access]
`

func TestReadAccess(t *testing.T) {
	access, err := readAccess(t.Context(), []byte(forPeople))
	if want := (Access{"https://omni.example.com:8100", "https://omni.example.com/oidc", "acme"}); err != nil || access != want {
		t.Errorf("%+v %v, want %+v", access, err, want)
	}

	for name, test := range map[string]struct {
		change []string
		want   string
	}{
		"another context":     {[]string{"current-context: acme-access", "current-context: other"}, "does not name the account"},
		"a name for a shell":  {[]string{"acme-access", "acme;rm-access"}, "does not name the account"},
		"no issuer":           {[]string{"--oidc-issuer-url=https://omni.example.com/oidc, ", ""}, "issuer"},
		"a file":              {[]string{"https://omni.example.com/oidc", "file:///etc/passwd"}, "issuer"},
		"a server with a key": {[]string{"https://omni.example.com:8100", "https://user:key@omni.example.com"}, "server"},
		"a long server":       {[]string{"https://omni.example.com:8100", "https://" + strings.Repeat("a", maxURL)}, "server"},
		"no text":             {[]string{"apiVersion: v1", "apiVersion: {"}, "not as expected"},
	} {
		text := strings.NewReplacer(test.change...).Replace(forPeople)
		if access, err := readAccess(t.Context(), []byte(text)); err == nil || !strings.Contains(err.Error(), test.want) || access != (Access{}) {
			t.Errorf("%s: %+v %v, want %q", name, access, err, test.want)
		} else if strings.Contains(err.Error(), "key@") {
			t.Errorf("%s: the error quotes the answer: %v", name, err)
		}
	}
}

// TestAccessBomb checks an answer of Omni that grows large when it is decoded.
func TestAccessBomb(t *testing.T) {
	var bomb strings.Builder

	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")

	for c := 'b'; c < 'm'; c++ {
		bomb.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}

	foreigntest.WantAllocated(t, 4<<20, func() {
		if _, err := readAccess(t.Context(), []byte(bomb.String())); err == nil {
			t.Error("it is read")
		}
	})
}
