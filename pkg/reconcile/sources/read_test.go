package sources_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// failing is an API that is away.
type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("away")
}

func TestValues(t *testing.T) {
	live := sources.Policy{}.Reader(fake.NewClientBuilder().WithObjects(
		secretOf("apps", "db", corev1.SecretTypeOpaque, nil),
		secretOf("apps", "helm", "helm.sh/release.v1", nil),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "db"},
			Data:       map[string]string{"key": "text"}, BinaryData: map[string][]byte{"binary": []byte("bytes")},
		},
	).Build())

	for name, test := range map[string]struct {
		read            func(context.Context, client.Reader, sources.Reference) ([]byte, error)
		from            client.Reader
		ref             sources.Reference
		value, err      string
		reason          string // of the outcome; empty: there is none
		waits, noFields bool
	}{
		"a Secret":             {read: sources.SecretValue, ref: sources.Reference{Name: "db", Key: "key"}, value: "canary"},
		"a ConfigMap":          {read: sources.ConfigMapValue, ref: sources.Reference{Name: "db", Key: "key"}, value: "text"},
		"a binary value":       {read: sources.ConfigMapValue, ref: sources.Reference{Name: "db", Key: "binary"}, value: "bytes"},
		"no Secret":            {read: sources.SecretValue, ref: sources.Reference{Name: "none"}, err: `Secret "none" (spec.ref) does not exist`, reason: "Missing", waits: true},
		"no key":               {read: sources.SecretValue, ref: sources.Reference{Name: "db", Key: "k"}, err: `Secret "db" (spec.ref) has no key "k"`, reason: "Missing", waits: true},
		"no ConfigMap":         {read: sources.ConfigMapValue, ref: sources.Reference{Name: "none"}, err: `ConfigMap "none" (spec.ref) does not exist`, reason: "Missing", waits: true},
		"no key of it":         {read: sources.ConfigMapValue, ref: sources.Reference{Name: "db", Key: "k"}, err: `ConfigMap "db" (spec.ref) has no key "k"`, reason: "Missing", waits: true},
		"without a field":      {read: sources.SecretValue, ref: sources.Reference{Name: "none"}, err: `Secret "none" does not exist`, reason: "Missing", waits: true, noFields: true},
		"a protected one":      {read: sources.SecretValue, ref: sources.Reference{Name: "helm", Key: "key"}, err: `spec.ref: Secret "helm" holds a record of Helm (type helm.sh/release.v1): it is neither copied nor used; put what is needed into a Secret of its own and name that`, reason: v1alpha1.ReasonSecretProtected},
		"the API is away":      {read: sources.SecretValue, from: failing{}, ref: sources.Reference{Name: "db"}, err: `read Secret "db": away`},
		"and for a ConfigMap":  {read: sources.ConfigMapValue, from: failing{}, ref: sources.Reference{Name: "db"}, err: `read ConfigMap "db": away`},
		"protected, and alone": {read: sources.SecretValue, ref: sources.Reference{Name: "helm"}, noFields: true, reason: v1alpha1.ReasonSecretProtected, err: `Secret "helm" holds a record of Helm (type helm.sh/release.v1): it is neither copied nor used; put what is needed into a Secret of its own and name that`},
	} {
		t.Run(name, func(t *testing.T) {
			test.ref.Namespace = "apps"
			if !test.noFields {
				test.ref.Field = "spec.ref"
			}

			from := live
			if test.from != nil {
				from = test.from
			}

			value, err := test.read(t.Context(), from, test.ref)
			if string(value) != test.value || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got %q, %v", value, err)
			}

			outcome, done := sources.Outcome(err, "Missing", "; it stays")
			if done != (test.reason != "") {
				t.Fatalf("done: %v, %+v", done, outcome)
			}

			if done && (outcome.Reason() != test.reason || outcome.Message() != test.err+"; it stays" || outcome.Stalls() == test.waits) {
				t.Errorf("%+v", outcome)
			}
		})
	}
}
