package omniconnection

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// allow writes the annotation that says where the key may go; nil takes it away.
func (f *fixture) allow(endpoints ...string) {
	f.t.Helper()

	secret := &corev1.Secret{}
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "team", Name: "key"}, secret); err != nil {
		f.t.Fatal(err)
	}

	secret.Annotations = map[string]string{"omni.texashpc.com/allowed-endpoints": strings.Join(endpoints, ",")}
	if endpoints == nil {
		secret.Annotations = nil
	}

	if err := f.client.Update(f.t.Context(), secret); err != nil {
		f.t.Fatal(err)
	}
}

// The key's Secret, and the operator, say where a key goes. Nothing reaches an
// endpoint that neither of them names.
func TestEndpointPolicy(t *testing.T) {
	const elsewhere = "https://omni.example.com"

	for name, test := range map[string]struct {
		annotation []string // "self" is the endpoint of the connection
		allowed    string
		required   bool
		stalls     bool
		warns      bool
		text       string
	}{
		"named":                           {annotation: []string{elsewhere, "self"}},
		"named, and required":             {annotation: []string{"self"}, required: true},
		"another is named":                {annotation: []string{elsewhere}, stalls: true, text: "omni.texashpc.com/allowed-endpoints=self"},
		"none is named":                   {annotation: []string{""}, stalls: true, text: "omni.texashpc.com/allowed-endpoints=self"},
		"a prefix is named":               {annotation: []string{"self1"}, stalls: true, text: "nothing was sent"},
		"no URL":                          {annotation: []string{elsewhere, "*"}, stalls: true, text: "entry 2"},
		"the operator names it":           {allowed: "self"},
		"the operator names it, required": {allowed: "self", required: true},
		"the operator overrules":          {annotation: []string{elsewhere}, allowed: "self"},
		"nobody says anything":            {warns: true, text: "omni.texashpc.com/allowed-endpoints=self"},
		"nobody says anything, required":  {required: true, stalls: true, text: "omni.texashpc.com/allowed-endpoints=self"},
		"the operator names another":      {allowed: elsewhere, warns: true, text: "omni.texashpc.com/allowed-endpoints=self"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			self := func(text string) string { return strings.ReplaceAll(text, "self", f.omni.Endpoint()) }

			allowed, err := omni.ParseOrigins(self(test.allowed))
			if err != nil {
				t.Fatal(err)
			}

			f.start(EndpointPolicy{Allowed: allowed, Required: test.required})
			f.secret("key", f.key)

			if test.annotation != nil {
				f.allow(strings.Split(self(strings.Join(test.annotation, ",")), ",")...)
			}

			if test.stalls {
				f.expect("CredentialsFound", metav1.ConditionFalse, "EndpointNotAllowed", `"key"`, self(test.text))
				f.expectSilence()

				return
			}

			f.runUntilReady(metav1.ConditionTrue) // a run waits two seconds for an answer at most
			f.expect("Reachable", metav1.ConditionTrue, "Connected")

			events := strings.Join(f.events.All(), "\n")
			if got := strings.Count(events, "Warning EndpointNotRestricted"); got > 1 || (got == 1) != test.warns || !strings.Contains(events, self(test.text)) {
				t.Errorf("events %q", f.events.All())
			}
		})
	}
}

// expectSilence checks that nothing was ever sent, and that no session is open.
func (f *fixture) expectSilence() {
	f.t.Helper()

	if requests := f.omni.Requests(); len(requests) > 0 {
		f.t.Errorf("requests were sent: %v", requests)
	}

	if _, open := f.pool.Get("uid-main"); open {
		f.t.Error("a session is open")
	}
}

// A key that goes over the network unprotected is used only if the operator says so.
func TestInsecureTransport(t *testing.T) {
	plain, err := omnisim.Start(omnisim.Options{Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}

	defer plain.Close()

	for name, edit := range map[string]func(*v1alpha1.OmniConnection){
		"plaintext": func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint, o.Spec.CABundle = plain.Endpoint(), nil },
		"any certificate": func(o *v1alpha1.OmniConnection) {
			o.Spec.CABundle, o.Spec.InsecureSkipTLSVerify = nil, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.edit(edit)

			if name == "plaintext" {
				f.omni.Close()
				f.omni = plain

				if f.key, err = plain.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour); err != nil {
					t.Fatal(err)
				}

				f.now = time.Now() // no key is younger
			}

			f.secret("key", f.key)
			f.allow(f.omni.Endpoint())
			f.start(EndpointPolicy{})
			f.expect("CredentialsFound", metav1.ConditionFalse, "InsecureTransport", "--allow-insecure-omni", "nothing was sent")
			f.expectSilence()

			f.start(EndpointPolicy{AllowInsecure: true})
			f.runUntilReady(metav1.ConditionTrue)
			f.expect("Reachable", metav1.ConditionTrue, "Connected")
		})
	}
}

// A right that is withdrawn ends the session, and coming back opens it again.
func TestEndpointIsWithdrawn(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.allow(f.omni.Endpoint())
	f.runUntilReady(metav1.ConditionTrue)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")
	f.allow("https://omni.example.com")
	f.expect("CredentialsFound", metav1.ConditionFalse, "EndpointNotAllowed")

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("a key that was withdrawn is used on")
	}

	f.allow(f.omni.Endpoint())
	f.runUntilReady(metav1.ConditionTrue)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")
}

// The deletion of clusters needs a session, too, and does not get one in another way.
func TestDeletionSendsNothingElsewhere(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.allow("https://omni.example.com")
	f.run()

	if err := f.client.Create(t.Context(), cluster("demo")); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}

	f.run()
	f.expectSilence()

	blocked := slices.IndexFunc(f.get().Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "DeletionBlocked" && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "allowed-endpoints="+f.omni.Endpoint())
	})
	if blocked < 0 {
		t.Errorf("%+v", f.get().Status.Conditions)
	}
}
