package durability

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// around is how long the load goes on before and after what happens.
const around = 2 * time.Second

// replicas is two API servers on an etcd of three members.
type replicas struct {
	*env.OmniReplicas

	hub  *env.Hub
	etcd *env.EtcdCluster
}

// TestReplicas is what two omni-apiservers on an external etcd are for.
func TestReplicas(t *testing.T) {
	r := &replicas{hub: newHub(t)}

	var err error
	if r.etcd, err = r.hub.StartEtcdCluster(t.Context(), 3); err != nil {
		t.Fatal(err)
	}

	if r.OmniReplicas, err = r.hub.StartOmniReplicas(t.Context(), r.etcd, 2, env.OmniAPIServerOptions{Binary: *apiServer}); err != nil {
		t.Fatal(err)
	}

	t.Run("share everything", func(t *testing.T) { testShared(t, r) })
	t.Run("etcd knows its clients", func(t *testing.T) { testEtcdClients(t, r) })
	t.Run("rolling restart", func(t *testing.T) { testRollingRestart(t, r) })
	t.Run("member killed", func(t *testing.T) { testMemberKilled(t, r) })
	t.Run("leader killed", func(t *testing.T) { testLeaderKilled(t, r) })
}

// What one replica was told, the other knows at once, and all members of the etcd have it.
func testShared(t *testing.T, r *replicas) {
	first, second := clientset(t, r.Replicas[0].RESTConfig()), clientset(t, r.Replicas[1].RESTConfig())

	made, err := first.OmniWorkers(metav1.NamespaceDefault).Create(t.Context(), newWorkers("shared", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	found, err := second.OmniWorkers(metav1.NamespaceDefault).Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || found.UID != made.UID {
		t.Errorf("the other replica has %v, %v", found, err)
	}

	for _, member := range r.etcd.Members {
		client, err := member.Client()
		if err != nil {
			t.Fatal(err)
		}

		got, err := client.Get(t.Context(), "/omni-apiserver/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || got.Count == 0 {
			t.Errorf("%s: %v, %v", member.Address(), got, err)
		}

		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Nobody without a certificate of the etcd's authority gets at the objects.
func testEtcdClients(t *testing.T, r *replicas) {
	foreign, err := tls.X509KeyPair(r.hub.FrontProxyClient())
	if err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		name    string
		shown   func(*tls.Config)
		refusal string
	}{
		{"the API servers' certificate", func(*tls.Config) {}, ""},
		{"no certificate", func(config *tls.Config) { config.Certificates = nil }, "remote error: tls: certificate required"},
		{"one of another authority", func(config *tls.Config) {
			// A client that only has it would not show it to a server that does not ask for it.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
		}, "remote error: tls: unknown certificate authority"},
	} {
		for _, member := range r.etcd.Members {
			config, err := r.etcd.TLS()
			if err != nil {
				t.Fatal(err)
			}

			tc.shown(config)
			caller := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}

			_, err = request(t.Context(), caller, http.MethodGet, "https://"+member.Address()+"/version", nil, nil)
			if (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
				t.Errorf("%s with %s: %v, want %q", member.Address(), tc.name, err, tc.refusal)
			}
		}
	}
}

// testRollingRestart restarts one replica after the other, as a Deployment does, with the program's own defaults.
func testRollingRestart(t *testing.T, r *replicas) {
	l := startLoad(t, r.hub.RESTConfig())
	pause(t.Context(), around)

	for i, replica := range r.Replicas {
		begin := time.Now()

		if err := replica.Stop(); err != nil {
			t.Fatal(err)
		}

		stopped := time.Since(begin)

		if err := replica.RestartDirectly(t.Context()); err != nil {
			t.Fatal(err)
		}

		r.waitForFront(t)
		t.Logf("%s replica %d: stopped in %s, back after %s", begin.Format("15:04:05.000"), i, stopped.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
		pause(t.Context(), around)
	}

	requests, failures := l.end()
	t.Logf("rolling restart of two replicas: %d requests, %d failed; connections by replica %v", requests, failures, r.Front.Connections())

	if failures > 0 {
		t.Errorf("%d of %d requests failed", failures, requests)
	}

	for _, wrong := range l.lost(t.Context()) {
		t.Error(wrong)
	}
}

func (r *replicas) waitForFront(t *testing.T) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventually, "all replicas to get connections", func(context.Context) error {
		if ready := r.Front.Ready(); ready < len(r.Replicas) {
			return fmt.Errorf("%d of %d do", ready, len(r.Replicas))
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func testMemberKilled(t *testing.T, r *replicas) {
	r.killUnderLoad(t, func(ctx context.Context) (*env.EtcdMember, error) {
		leader, err := r.etcd.Leader(ctx)
		if err != nil {
			return nil, err
		}

		for _, member := range r.etcd.Members {
			if member != leader {
				return member, nil
			}
		}

		return nil, errors.New("all members lead")
	})
}

func testLeaderKilled(t *testing.T, r *replicas) { r.killUnderLoad(t, r.etcd.Leader) }

// killUnderLoad kills a member of the etcd. Requests may fail while the others notice, and elect a leader, but soon none
// does, with two members of three; and what was acknowledged stays.
func (r *replicas) killUnderLoad(t *testing.T, choose func(context.Context) (*env.EtcdMember, error)) {
	var member *env.EtcdMember

	// A busy machine may make the members elect again.
	if err := env.Eventually(t.Context(), eventually, "a leader", func(ctx context.Context) (err error) {
		member, err = choose(ctx)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	l := startLoad(t, r.hub.RESTConfig())
	pause(t.Context(), around)
	member.Kill()
	pause(t.Context(), 10*time.Second)

	requests, failures := l.end()
	t.Logf("a member of the etcd killed: %d requests, %d failed in 10s", requests, failures)

	if most := requests / 10; failures > most {
		t.Errorf("%d of %d requests failed, want %d at most", failures, requests, most)
	}

	r.waitForFront(t)

	calm := startLoad(t, r.hub.RESTConfig())
	pause(t.Context(), around)

	if requests, failures := calm.end(); failures > 0 {
		t.Errorf("with two members left, %d of %d requests failed", failures, requests)
	}

	for _, wrong := range l.lost(t.Context()) {
		t.Error(wrong)
	}

	if err := member.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}
