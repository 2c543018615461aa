package omniconnection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestConnected(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected", b.omni.Endpoint(), "operator")

	status := b.get().Status
	if status.Endpoint != b.omni.Endpoint() || !strings.HasPrefix(status.ServiceAccount.Name, "operator") || status.ServiceAccount.ExpirationTime == nil {
		t.Errorf("%+v", status)
	}

	if _, open := b.pool.Get("uid-main"); !open {
		t.Error("no session for the clusters")
	}

	names := gathered(t, b.objects, b.calls)
	for _, want := range []string{"omni_resource_info", "omni_service_account_expiration_timestamp_seconds", "omni_api_requests_total"} {
		if !strings.Contains(names, want) {
			t.Errorf("no metric %s in %s", want, names)
		}
	}
}

func gathered(t *testing.T, collectors ...prometheus.Collector) string {
	t.Helper()

	registry := prometheus.NewRegistry()
	for _, collector := range collectors {
		if err := registry.Register(collector); err != nil {
			t.Fatal(err)
		}
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	return fmt.Sprint(families)
}

// Each fault has a reason of its own, and heals when its cause goes.
func TestFaults(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	nobody := "https://" + listener.Addr().String()
	listener.Close()

	other, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	defer other.Close()

	for name, test := range map[string]struct {
		set       func(*bench)
		condition string
		reason    string
		stalls    bool
		text      string
	}{
		"no Secret":         {func(*bench) {}, "CredentialsFound", "SecretNotFound", false, `"key"`},
		"another key":       {func(b *bench) { b.secret("key", b.key); b.edit(setKey("other")) }, "CredentialsFound", "SecretKeyNotFound", false, `"other"`},
		"environment block": {func(b *bench) { b.secret("key", "OMNI_ENDPOINT=x\nOMNI_SERVICE_ACCOUNT_KEY="+b.key) }, "CredentialsFound", "KeyIsEnvironmentBlock", true, "OMNI_SERVICE_ACCOUNT_KEY"},
		"garbage":           {func(b *bench) { b.secret("key", "not a key") }, "CredentialsFound", "KeyInvalid", true, `"key"`},
		"expired":           {func(b *bench) { b.secret("key", b.key); b.now = b.now.Add(31 * 24 * time.Hour) }, "CredentialsFound", "KeyExpired", true, "expired at"},
		"revoked": {func(b *bench) {
			b.secret("key", b.key)

			if err := b.omni.RevokeKey(b.key); err != nil {
				b.t.Fatal(err)
			}
		}, "Reachable", "Unauthenticated", true, ""},
		"low role": {func(b *bench) {
			b.secret("key", b.key)

			if err := b.omni.SetRole("operator", omnisim.RoleNone); err != nil {
				b.t.Fatal(err)
			}
		}, "Reachable", "PermissionDenied", true, "role"},
		"another CA": {func(b *bench) {
			b.secret("key", b.key)
			b.edit(func(o *v1alpha1.OmniConnection) { o.Spec.CABundle = other.CAPEM() })
		}, "Reachable", "TLSFailed", true, "caBundle"},
		"nobody there": {func(b *bench) {
			b.secret("key", b.key)
			b.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint = nobody })
		}, "Reachable", "Unreachable", false, nobody},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			test.set(b)
			b.expect(test.condition, "False", test.reason, test.text)

			conditions := b.get().Status.Conditions
			if got := apimeta.IsStatusConditionTrue(conditions, "Stalled"); got != test.stalls {
				t.Errorf("stalled: %v", got)
			}

			if got := apimeta.IsStatusConditionTrue(conditions, "Reconciling"); got == test.stalls {
				t.Errorf("reconciling: %v", got)
			}

			if _, open := b.pool.Get("uid-main"); open {
				t.Error("a session is open")
			}
		})
	}
}

func setKey(key string) func(*v1alpha1.OmniConnection) {
	return func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Key = key }
}

func TestKeyIsWithdrawnAndComesBack(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected")
	b.secret("key", "gone")
	b.expect("CredentialsFound", "False", "KeyInvalid")

	if _, open := b.pool.Get("uid-main"); open {
		t.Error("a key that was withdrawn is used on")
	}

	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected")
}

// A key can be added at any time: the connection waits for it, and uses no other meanwhile.
func TestKeyIsAdded(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected")
	b.edit(setKey("other"))
	b.expect("CredentialsFound", "False", "SecretKeyNotFound")

	if _, open := b.pool.Get("uid-main"); open {
		t.Error("a key that the spec does not name is used on")
	}

	secret := &corev1.Secret{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "key"}, secret); err != nil {
		t.Fatal(err)
	}

	secret.Data["other"] = []byte(b.key)

	if err := b.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	b.expect("Reachable", "True", "Connected")
}

func TestOmniGoesAwayAndComesBack(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.expect("Reachable", "True", "Connected")
	b.omni.GoDown()
	b.runUntilReady(metav1.ConditionFalse) // a lost watch is noticed in a moment

	if err := b.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	b.runUntilReady(metav1.ConditionTrue)
}

func (b *bench) runUntilReady(want metav1.ConditionStatus) {
	b.t.Helper()

	deadline := time.Now().Add(30 * time.Second)
	for !apimeta.IsStatusConditionPresentAndEqual(b.get().Status.Conditions, "Ready", want) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%+v", b.get().Status.Conditions)
		}

		b.run()
	}
}

// A fleet wakes its connection often; Omni is not asked each time.
func TestChecksAreSpaced(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.run()

	reads := func() int {
		total := 0
		for request, count := range b.omni.Requests() {
			if request.Method == "Get" { //nolint:usestdlibvars // of gRPC, not HTTP
				total += count
			}
		}

		return total
	}

	before := reads()

	for range 5 {
		b.run()
	}

	if got := reads() - before; got != 0 {
		t.Errorf("%d reads within a moment", got)
	}

	b.now = b.now.Add(checkPause)
	b.run()

	if got := reads() - before; got != 1 {
		t.Errorf("%d reads after a while", got)
	}

	b.edit(func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	b.run()

	if got := reads() - before; got != 2 {
		t.Errorf("%d reads after a request", got)
	}
}

// A key that ends soon is one event for each key, not one for each run.
func TestExpiryIsWarnedOfOnce(t *testing.T) {
	b := newBench(t)
	b.secret("key", b.key)
	b.run()

	if strings.Contains(strings.Join(b.seen, "\n"), "KeyExpiresSoon") {
		t.Error("warned 30 days before")
	}

	b.now = b.now.Add(24 * 24 * time.Hour)

	for range 3 {
		b.run()
	}

	if got := strings.Count(strings.Join(b.seen, "\n"), "Warning KeyExpiresSoon"); got != 1 {
		t.Errorf("%d events: %q", got, b.seen)
	}
}

// Nothing of any key is in what users and operators can read.
func TestKeyIsNeverShown(t *testing.T) {
	b := newBench(t)

	var all bytes.Buffer

	for _, value := range []string{
		b.key, "OMNI_SERVICE_ACCOUNT_KEY=" + b.key, b.key + "\n" + b.key, b.key[:len(b.key)-40], "x" + b.key, strings.ToLower(b.key), b.key + "====",
	} {
		b.secret("key", value)
		b.run()

		text, err := json.Marshal(b.get())
		if err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&all, "%s\n%q\n%s\n", text, b.seen, gathered(t, b.objects, b.calls))
	}

	for i := 0; i+24 <= len(b.key); i += 8 {
		if strings.Contains(strings.ToLower(all.String()), strings.ToLower(b.key[i:i+24])) {
			t.Fatalf("a piece of the key is shown: %s", b.key[i:i+24])
		}
	}
}
