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
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestConnected(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected", f.omni.Endpoint(), "operator")

	status := f.get().Status
	if status.Endpoint != f.omni.Endpoint() || !strings.HasPrefix(status.ServiceAccount.Name, "operator") || status.ServiceAccount.ExpirationTime == nil {
		t.Errorf("%+v", status)
	}

	if _, open := f.pool.Get("uid-main"); !open {
		t.Error("no session for the clusters")
	}

	names := gathered(t, f.objects, f.calls)
	for _, want := range []string{"omni_resource_info", "omni_service_account_expiration_timestamp_seconds", "omni_service_account_renewal_timestamp_seconds", "omni_api_requests_total"} {
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
		set       func(*fixture)
		condition string
		reason    string
		stalls    bool
		text      string
	}{
		"no Secret":         {func(*fixture) {}, "CredentialsFound", "SecretNotFound", false, `"key"`},
		"another key":       {func(f *fixture) { f.secret("key", f.key); f.edit(setKey("other")) }, "CredentialsFound", "SecretKeyNotFound", false, `"other"`},
		"environment block": {func(f *fixture) { f.secret("key", "OMNI_ENDPOINT=x\nOMNI_SERVICE_ACCOUNT_KEY="+f.key) }, "CredentialsFound", "KeyIsEnvironmentBlock", true, "OMNI_SERVICE_ACCOUNT_KEY"},
		"garbage":           {func(f *fixture) { f.secret("key", "not a key") }, "CredentialsFound", "KeyInvalid", true, `"key"`},
		"expired":           {func(f *fixture) { f.secret("key", f.key); f.now = f.now.Add(31 * 24 * time.Hour) }, "CredentialsFound", "KeyExpired", true, "expired at"},
		"revoked": {func(f *fixture) {
			f.secret("key", f.key)

			if err := f.omni.RevokeKey(f.key); err != nil {
				f.t.Fatal(err)
			}
		}, "Reachable", "Unauthenticated", true, ""},
		"another clock than Omni's": {func(f *fixture) {
			f.secret("key", f.key)
			f.omni.SetClock(-10 * time.Minute)
		}, "Reachable", "Unauthenticated", true, "or the clock here is more than 5 minutes from Omni's): read from Omni: invalid signature"},
		"another clock than everybody's": {func(f *fixture) {
			f.secret("key", f.key)
			f.omni.SetClock(time.Hour)
			f.skew = time.Hour - time.Second
		}, "Reachable", "Unauthenticated", true, "the clocks of kube-apiserver and of omni-controller differ by about 1h0m0s: mend that before you change the key"},
		"low role": {func(f *fixture) {
			f.secret("key", f.key)

			if err := f.omni.SetRole("operator", omnisim.RoleNone); err != nil {
				f.t.Fatal(err)
			}
		}, "Reachable", "PermissionDenied", true, "role"},
		"another CA": {func(f *fixture) {
			f.secret("key", f.key)
			f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.CABundle = other.CAPEM() })
		}, "Reachable", "TLSFailed", true, "caBundle"},
		"nobody there": {func(f *fixture) {
			f.secret("key", f.key)
			f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint = nobody })
		}, "Reachable", "Unreachable", false, nobody},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.set(f)
			f.expect(test.condition, "False", test.reason, test.text)

			conditions := f.get().Status.Conditions
			if got := apimeta.IsStatusConditionTrue(conditions, "Stalled"); got != test.stalls {
				t.Errorf("stalled: %v", got)
			}

			if got := apimeta.IsStatusConditionTrue(conditions, "Reconciling"); got == test.stalls {
				t.Errorf("reconciling: %v", got)
			}

			if _, open := f.pool.Get("uid-main"); open {
				t.Error("a session is open")
			}
		})
	}
}

func setKey(key string) func(*v1alpha1.OmniConnection) {
	return func(o *v1alpha1.OmniConnection) { o.Spec.Auth.ServiceAccountSecretRef.Key = key }
}

func TestKeyIsWithdrawnAndComesBack(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")
	f.secret("key", "gone")
	f.expect("CredentialsFound", "False", "KeyInvalid")

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("a key that was withdrawn is used on")
	}

	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")
}

// A key can be added at any time: the connection waits for it, and uses no other meanwhile.
func TestKeyIsAdded(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")
	f.edit(setKey("other"))
	f.expect("CredentialsFound", "False", "SecretKeyNotFound")

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("a key that the spec does not name is used on")
	}

	secret := &corev1.Secret{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "key"}, secret); err != nil {
		t.Fatal(err)
	}

	secret.Data["other"] = []byte(f.key)

	if err := f.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "True", "Connected")
}

func TestOmniGoesAwayAndComesBack(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")
	f.omni.GoDown()
	f.now = f.now.Add(time.Minute)
	f.runUntilReady(metav1.ConditionFalse) // a lost watch is noticed in a moment

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.runUntilReady(metav1.ConditionTrue)
}

// A restart of Omni changes no condition, unless somebody asks.
func TestShortOutageIsNotShown(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", "True", "Connected")

	lease, open := f.pool.Get("uid-main")
	if !open {
		t.Fatal("no session")
	}
	defer lease.Release()

	time.Sleep(time.Until(lease.Health().Since.Add(mirror.OutageGrace))) // else it is no restart
	f.omni.GoDown()

	await.Until(t, "the watches are lost", func() bool { return !lease.Health().Synced })

	writes := f.writes

	for range 2 { // with the check of before, and with a new one
		if result := f.run(); f.writes != writes || result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
			t.Errorf("%d writes, then %+v: %+v", f.writes-writes, result, f.get().Status.Conditions)
		}

		f.start(EndpointPolicy{}) // which forgets the check
	}

	f.edit(func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.runUntilReady(metav1.ConditionFalse)
}

func (f *fixture) runUntilReady(want metav1.ConditionStatus) {
	f.t.Helper()

	deadline := time.Now().Add(await.Limit)
	for !apimeta.IsStatusConditionPresentAndEqual(f.get().Status.Conditions, "Ready", want) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%+v", f.get().Status.Conditions)
		}

		f.run()
	}
}

// A fleet wakes its connection often; Omni is not asked each time.
func TestChecksAreSpaced(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.run()

	reads := func() int {
		total := 0
		for request, count := range f.omni.Requests() {
			if request.Method == "Get" { //nolint:usestdlibvars // of gRPC, not HTTP
				total += count
			}
		}

		return total
	}

	before := reads()

	for range 5 {
		f.run()
	}

	if got := reads() - before; got != 0 {
		t.Errorf("%d reads within a moment", got)
	}

	f.now = f.now.Add(checkPause)
	f.run()

	if got := reads() - before; got != 1 {
		t.Errorf("%d reads after a while", got)
	}

	f.edit(func(o *v1alpha1.OmniConnection) {
		o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.run()

	if got := reads() - before; got != 2 {
		t.Errorf("%d reads after a request", got)
	}
}

// A key that ends soon is one event for each key, not one for each run.
func TestExpiryIsWarnedOfOnce(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.run()

	if strings.Contains(strings.Join(f.events.All(), "\n"), "KeyExpiresSoon") {
		t.Error("warned 30 days before")
	}

	f.now = f.now.Add(24 * 24 * time.Hour)

	for range 3 {
		f.run()
	}

	if got := strings.Count(strings.Join(f.events.All(), "\n"), "Warning KeyExpiresSoon"); got != 1 {
		t.Errorf("%d events: %q", got, f.events.All())
	}
}

// Nothing of any key is in what users and operators can read.
func TestKeyIsNeverShown(t *testing.T) {
	f := newFixture(t)

	var all bytes.Buffer

	for _, value := range []string{
		f.key, "OMNI_SERVICE_ACCOUNT_KEY=" + f.key, f.key + "\n" + f.key, f.key[:len(f.key)-40], "x" + f.key, strings.ToLower(f.key), f.key + "====",
	} {
		f.secret("key", value)
		f.run()

		text, err := json.Marshal(f.get())
		if err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&all, "%s\n%q\n%s\n", text, f.events.All(), gathered(t, f.objects, f.calls))
	}

	for i := 0; i+24 <= len(f.key); i += 8 {
		if strings.Contains(strings.ToLower(all.String()), strings.ToLower(f.key[i:i+24])) {
			t.Fatalf("a piece of the key is shown: %s", f.key[i:i+24])
		}
	}
}
