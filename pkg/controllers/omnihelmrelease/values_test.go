package omnihelmrelease

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func testObjects() []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

	return []client.Object{
		&corev1.Secret{ObjectMeta: meta("auth"), Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}},
		&corev1.Secret{ObjectMeta: meta("ca"), Data: map[string][]byte{"ca.crt": []byte("pem")}},
		&corev1.Secret{ObjectMeta: meta("keys"), Data: map[string][]byte{"keyring": {}}},
		&corev1.Secret{ObjectMeta: meta("values"), Data: map[string][]byte{"values.yaml": []byte("a: secret\nb: 1"), "token": []byte("canary")}},
		&corev1.ConfigMap{ObjectMeta: meta("values"), Data: map[string]string{"values.yaml": "a: config", "list": "[canary]"}},
	}
}

func newTestRelease(chart v1alpha1.HelmChart) *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}, Spec: v1alpha1.OmniHelmReleaseSpec{Chart: chart},
	}
}

func TestSource(t *testing.T) {
	r := &reconciler{live: fake.NewClientBuilder().WithObjects(testObjects()...).Build()}

	got, err := r.source(t.Context(), newTestRelease(v1alpha1.HelmChart{
		Repository: "https://charts.example.com", Chart: "demo", Version: "1.x", AuthSecretRef: &v1alpha1.LocalObjectReference{Name: "auth"},
		CASecretRef: &v1alpha1.LocalObjectReference{Name: "ca"}, Verify: &v1alpha1.HelmVerify{KeyringSecretRef: v1alpha1.SecretKeyReference{Name: "keys"}},
	}))
	if err != nil {
		t.Fatal(err)
	}

	if got.Repository != "https://charts.example.com" || got.Chart != "demo" || got.Version != "1.x" || string(got.CA) != "pem" ||
		got.Credentials.Username != "u" || got.Credentials.Password != "p" {
		t.Errorf("the source is %v", got)
	}

	if got.Keyring == nil {
		t.Error("an empty keyring turns the check off")
	}
}

func TestMissingInputs(t *testing.T) {
	r := &reconciler{live: fake.NewClientBuilder().WithObjects(testObjects()...).Build()}

	for want, chart := range map[string]v1alpha1.HelmChart{
		`Secret "x" (spec.chart.authSecretRef) does not exist`:       {AuthSecretRef: &v1alpha1.LocalObjectReference{Name: "x"}},
		`Secret "auth" (spec.chart.caSecretRef) has no key "ca.crt"`: {CASecretRef: &v1alpha1.LocalObjectReference{Name: "auth"}},
		`ConfigMap "x" (spec.chart.valuesFrom[0]) does not exist`:    {ValuesFrom: []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesConfigMap, Name: "x"}}},
		`Secret "values" (spec.chart.valuesFrom[0]) has no key "k"`:  {ValuesFrom: []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "values", Key: "k"}}},
	} {
		release := newTestRelease(chart)
		_, err := r.source(t.Context(), release)

		if err == nil {
			_, err = r.values(t.Context(), release)
		}

		if missing := sources.Missing(err); missing == nil || missing.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Secrets that no object may use, in every field that names one.
func TestProtectedSecrets(t *testing.T) {
	objects := testObjects()
	for _, object := range objects {
		object.SetLabels(map[string]string{v1alpha1.LabelProtected: v1alpha1.ProtectedValue})
	}

	r := &reconciler{live: sources.Policy{}.Reader(fake.NewClientBuilder().WithObjects(objects...).Build())}

	for field, chart := range map[string]v1alpha1.HelmChart{
		"spec.chart.authSecretRef":           {AuthSecretRef: &v1alpha1.LocalObjectReference{Name: "auth"}},
		"spec.chart.caSecretRef":             {CASecretRef: &v1alpha1.LocalObjectReference{Name: "ca"}},
		"spec.chart.verify.keyringSecretRef": {Verify: &v1alpha1.HelmVerify{KeyringSecretRef: v1alpha1.SecretKeyReference{Name: "keys"}}},
		"spec.chart.valuesFrom[0]":           {ValuesFrom: []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesSecret, Name: "values", Optional: new(true)}}},
	} {
		release := newTestRelease(chart)
		_, err := r.source(t.Context(), release)

		if err == nil {
			_, err = r.values(t.Context(), release)
		}

		outcome, done := explainInput(err)
		if !done || outcome.Reason() != v1alpha1.ReasonSecretProtected || !strings.HasPrefix(outcome.Message(), field+`: Secret "`) {
			t.Errorf("%s: %s, %s, %v", field, outcome.Reason(), outcome.Message(), err)
		}
	}
}

func TestValues(t *testing.T) {
	r := &reconciler{live: fake.NewClientBuilder().WithObjects(testObjects()...).Build()}

	values, err := r.values(t.Context(), newTestRelease(v1alpha1.HelmChart{
		Values: &v1alpha1.FreeForm{Raw: []byte(`{"b":9007199254740993}`)},
		ValuesFrom: []v1alpha1.HelmValuesReference{
			{Kind: v1alpha1.ValuesConfigMap, Name: "values"},
			{Kind: v1alpha1.ValuesSecret, Name: "values"},
			{Kind: v1alpha1.ValuesSecret, Name: "values", Key: "token", TargetPath: "auth.token"},
			{Kind: v1alpha1.ValuesSecret, Name: "gone", Optional: new(true)},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]any{"a": "secret", "b": int64(9007199254740993), "auth": map[string]any{"token": "canary"}}
	if diff := cmp.Diff(want, values.Tree()); diff != "" {
		t.Error(diff)
	}

	if got := values.Redact("token canary, config"); got != "token [removed], config" {
		t.Error(got)
	}

	_, err = r.values(t.Context(), newTestRelease(v1alpha1.HelmChart{
		ValuesFrom: []v1alpha1.HelmValuesReference{{Kind: v1alpha1.ValuesConfigMap, Name: "values", Key: "list"}},
	}))
	if err == nil || !strings.Contains(err.Error(), "must be an object") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// A text that a targetPath places goes over the inline values, wherever its reference stands, as in Flux.
func TestATargetPathWins(t *testing.T) {
	r := &reconciler{live: fake.NewClientBuilder().WithObjects(testObjects()...).Build()}

	values, err := r.values(t.Context(), newTestRelease(v1alpha1.HelmChart{
		Values: &v1alpha1.FreeForm{Raw: []byte(`{"auth":{"token":"inline","user":"inline"},"a":"inline"}`)},
		ValuesFrom: []v1alpha1.HelmValuesReference{
			{Kind: v1alpha1.ValuesSecret, Name: "values", Key: "token", TargetPath: "auth.token"},
			{Kind: v1alpha1.ValuesConfigMap, Name: "values"},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]any{"auth": map[string]any{"token": "canary", "user": "inline"}, "a": "inline"}
	if diff := cmp.Diff(want, values.Tree()); diff != "" {
		t.Error(diff)
	}
}

// One large object that is named again and again is not held once for each time.
func TestManyReferencesToLargeValues(t *testing.T) {
	large := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "large"},
		Data:       map[string]string{"values.yaml": strings.Repeat("x", 1<<20)},
	}
	r := &reconciler{live: fake.NewClientBuilder().WithObjects(large).Build()}

	refs := make([]v1alpha1.HelmValuesReference, 100)
	for i := range refs {
		refs[i] = v1alpha1.HelmValuesReference{Kind: v1alpha1.ValuesConfigMap, Name: "large", TargetPath: "a"}
	}

	foreigntest.WantAllocated(t, 96<<20, func() {
		_, err := r.values(t.Context(), newTestRelease(v1alpha1.HelmChart{ValuesFrom: refs}))

		var refused *invalid
		if !errors.As(err, &refused) || !strings.Contains(refused.message, "(spec.chart.valuesFrom[4]): with the values before it, it has more than 4194304 bytes") {
			t.Error(err)
		}
	})
}
