package durability

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

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
