//go:build realomni

package realomni

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/access"
	"github.com/siderolabs/omni/client/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestConnectionLedElsewhere leads a connection to the same Omni under other names, and then to
// another Omni: the cluster follows the names, and nothing is made in the other one.
func TestConnectionLedElsewhere(t *testing.T) {
	s := &scenario{T: t}
	s.start()
	s.apply(connectionManifests(t))
	s.kubectl("wait", "oconn/omni", "--for=condition=Ready", "--timeout=60s")

	v := &victim{scenario: s, cluster: "led-elsewhere"}
	v.documents("", machine1)
	v.says(synced())
	s.kubectl("wait", "ocl/"+v.cluster, "--for=jsonpath={.status.omniClusterID}", "--timeout=60s")

	id, endpoint := v.read(".status.omniClusterID"), os.Getenv("OMNI_ENDPOINT")

	parsed, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}

	other, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(other.Close)

	key, err := other.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{endpoint + "/", "https://localhost:" + parsed.Port()} {
		s.lead(name, "key")
		v.says(synced())
		s.kubectl("wait", "ocl/"+v.cluster, "--for=jsonpath={.status.endpoint}="+name, "--timeout=60s")

		if now := v.read(".status.omniClusterID"); now != id {
			t.Fatalf("at %s the cluster is %s, it was %s", name, now, id)
		}
	}

	last := v.read(".status.endpoint")

	s.apply(keyManifest("other-key", key, other.Endpoint()))
	s.kubectl("patch", "oconn", "omni", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"endpoint":%q,"caBundle":%q,"auth":{"serviceAccountSecretRef":{"name":"other-key"}}}}`,
		other.Endpoint(), base64.StdEncoding.EncodeToString(other.CAPEM())))
	v.says(stalled(v1alpha1.ReasonEndpointChanged, last, other.Endpoint(), "orphan"))
	s.kubectl("annotate", "ocl", v.cluster, v1alpha1.AnnotationRecreate+"="+id)
	time.Sleep(settleTime) // in which nothing may happen that no poll would see
	v.says(stalled(v1alpha1.ReasonEndpointChanged, v1alpha1.AnnotationRecreate))

	if writes := other.Writes(); len(writes) != 0 {
		t.Errorf("writes to the other Omni: %+v", writes)
	}

	s.apply(connectionManifests(t))
	v.says(synced())

	if now := v.read(".status.omniClusterID"); now != id {
		t.Errorf("back again the cluster is %s, it was %s", now, id)
	}

	v.cleanUp()
}

// TestKeyThatEnds: a connection says by itself that its key has expired, and at the first call of
// anybody that it was revoked.
func TestKeyThatEnds(t *testing.T) {
	s := &scenario{T: t}
	s.start()

	ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		t.Fatal(err)
	}

	admin, err := omnisim.Connect(os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), ca)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = admin.Close() })

	t.Run("expired", func(t *testing.T) {
		const lifetime = 45 * time.Second

		s := &scenario{T: t, stack: s.stack, other: s.other}
		ends := time.Now().Add(lifetime)
		s.apply(keyManifest("short", account(t, admin, "short-lived", lifetime), os.Getenv("OMNI_ENDPOINT")) + connectionTo("short", "short", ca))
		s.kubectl("wait", "oconn/short", "--for=condition=Ready", "--timeout=40s")
		time.Sleep(time.Until(ends))
		s.connectionSays("short", v1alpha1.ReasonKeyExpired)
		t.Logf("said %s after the end", time.Since(ends).Round(100*time.Millisecond))

		// What wakes it later does not make it good again.
		time.Sleep(time.Minute)
		s.kubectl("annotate", "oconn", "short", v1alpha1.AnnotationReconcileRequestedAt+"=later")
		s.kubectl("wait", "oconn/short", "--for=jsonpath={.status.lastHandledReconcileAt}=later", "--timeout=60s")
		s.connectionSays("short", v1alpha1.ReasonKeyExpired)
	})

	t.Run("revoked", func(t *testing.T) {
		s := &scenario{T: t, stack: s.stack, other: s.other}
		s.apply(keyManifest("revoked", account(t, admin, "revoked", time.Hour), os.Getenv("OMNI_ENDPOINT")) + connectionTo("omni", "revoked", ca))
		s.kubectl("wait", "oconn/omni", "--for=condition=Ready", "--timeout=60s")

		v := &victim{scenario: s, cluster: "revoked"}
		v.documents("", machine1)
		v.says(synced())

		if err := admin.Management().DestroyServiceAccount(t.Context(), "revoked"); err != nil {
			t.Fatal(err)
		}

		revoked := time.Now()
		v.merge(`{"spec":{"labels":{"after":"revocation"}}}`)
		s.connectionSays("omni", v1alpha1.ReasonUnauthenticated)
		t.Logf("said %s after the revocation", time.Since(revoked).Round(100*time.Millisecond))

		s.apply(connectionManifests(t))
		v.says(synced())
		v.cleanUp()
	})
}

// lead changes where a connection leads, with a key that may be used there.
func (s *scenario) lead(endpoint, key string) {
	s.Helper()
	s.apply(keyManifest(key, os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), endpoint))
	s.kubectl("patch", "oconn", "omni", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"endpoint":%q}}`, endpoint))
}

// connectionSays waits until a connection is not Ready for a reason.
func (s *scenario) connectionSays(name, reason string) {
	s.Helper()

	if err := env.Eventually(s.Context(), eventually, reason, func(context.Context) error {
		out, _, err := s.stack.Kubectl(s.Context(), "-n", namespace, "get", "oconn", name, "-o", "json")
		if err != nil {
			return err
		}

		var connection v1alpha1.OmniConnection
		if err := json.Unmarshal([]byte(out), &connection); err != nil {
			return err
		}

		for _, c := range connection.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionFalse && c.Reason == reason {
				s.Logf("%s: %s", c.Reason, c.Message)

				return nil
			}
		}

		return fmt.Errorf("conditions %+v", connection.Status.Conditions)
	}); err != nil {
		s.Fatal(err)
	}
}

// account registers a service account whose key lives for a while.
func account(t *testing.T, admin *client.Client, name string, lifetime time.Duration) string {
	t.Helper()

	pair, err := pgp.GenerateKey(name, "", access.ParseServiceAccountFromName(name).FullID(), lifetime)
	if err != nil {
		t.Fatal(err)
	}

	public, err := pair.ArmorPublic()
	if err != nil {
		t.Fatal(err)
	}

	if _, err = admin.Management().CreateServiceAccount(t.Context(), name, public, "Operator", false); err != nil {
		t.Fatal(err)
	}

	key, err := serviceaccount.Encode(name, pair)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func keyManifest(name, key string, endpoints ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, annotations: {omni.texashpc.com/allowed-endpoints: %q}}
stringData: {serviceAccountKey: %q}
---
`, name, strings.Join(endpoints, ","), key)
}

func connectionTo(name, key string, ca []byte) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniConnection
metadata: {name: %s}
spec:
  endpoint: %s
  caBundle: %s
  auth: {serviceAccountSecretRef: {name: %s}}
---
`, name, os.Getenv("OMNI_ENDPOINT"), base64.StdEncoding.EncodeToString(ca), key)
}
