package live

import (
	"errors"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func wantReason(t *testing.T, err error, reason helm.Reason) {
	t.Helper()

	var failure *helm.Error
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Errorf("got %v, want reason %s", err, reason)
	}
}

func TestNoRights(t *testing.T) {
	config, err := cluster.RESTConfigFor("nobody", "nothing")
	if err != nil {
		t.Fatal(err)
	}

	r := newReleaseFor(t, config)
	_, err = r.client.Observe(t.Context())
	wantReason(t, err, helm.ReasonForbidden)

	err = r.client.Run(t.Context(), helm.Request{
		Decision: helm.Decision{Action: helm.ActionInstall}, Settings: r.settings, Chart: load(t, chartserver.ConfigMapChart("demo", "1.0.0")),
	})
	wantReason(t, err, helm.ReasonForbidden)
}

func TestNoCluster(t *testing.T) {
	r := newReleaseFor(t, &rest.Config{Host: "https://127.0.0.1:1"})
	begun := time.Now()
	_, err := r.client.Observe(t.Context())
	wantReason(t, err, helm.ReasonUnreachable)

	err = r.client.Run(t.Context(), helm.Request{
		Decision: helm.Decision{Action: helm.ActionUninstall}, Settings: r.settings,
	})
	wantReason(t, err, helm.ReasonUnreachable)

	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestSecretValuesAreNotTold(t *testing.T) {
	r := newRelease(t)
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	chart.Files["values.schema.json"] = `{"properties":{"password":{"type":"string","pattern":"^[0-9]+$"}}}`
	chart.Files["templates/fail.yaml"] = `{{ if .Values.loud }}{{ fail (printf "bad password %s" .Values.password) }}{{ end }}`

	for _, name := range []string{"schema", "template"} {
		secret := helm.Layer{From: "s", Text: []byte("password: canary-password"), Secret: true}

		values, err := helm.Merge([]helm.Layer{secret, {From: "inline", Text: []byte("loud: true")}})
		if err != nil {
			t.Fatal(err)
		}

		if name == "template" {
			delete(chart.Files, "values.schema.json")
		}

		err = r.client.Run(t.Context(), helm.Request{
			Decision: helm.Decision{Action: helm.ActionInstall}, Settings: r.settings, Chart: load(t, chart), Values: values,
		})
		wantReason(t, err, helm.ReasonFailed)

		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if strings.Contains(r.logged.String(), "canary") {
		t.Errorf("the log holds a secret:\n%s", r.logged)
	}

	if got := r.numbers(); got != nil {
		t.Errorf("revisions were made: %v", got)
	}
}

// The loop of this template ends after about 15 seconds, so that it does not burden other tests for ever.
func TestEndlessTemplate(t *testing.T) {
	r := newRelease(t)
	r.settings.Timeout = time.Second

	begun := time.Now()
	_, err := r.step(t.Context(), chartOf("1.0.0", `{{ range $a := until 150 }}{{ range $b := until 1000000 }}{{ end }}{{ end }}`), "")
	wantReason(t, err, helm.ReasonTimeout)

	if took := time.Since(begun); took > 12*time.Second {
		t.Errorf("took %s", took)
	}
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.live.example.com, annotations: {from: VERSION}}
spec:
  group: live.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func TestCRDs(t *testing.T) {
	client, err := apiextensions.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	get := func() *apiextensionsv1.CustomResourceDefinition {
		t.Helper()

		found, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "things.live.example.com", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		return found
	}

	chart := func(version string) chartserver.Chart {
		made := chartOf(version, "apiVersion: live.example.com/v1\nkind: Thing\nmetadata: {name: {{ .Release.Namespace }}}\n")
		made.Files["crds/things.yaml"] = strings.ReplaceAll(crd, "VERSION", version)

		return made
	}

	t.Run("first", func(t *testing.T) {
		r := newRelease(t)
		r.want(helm.ActionInstall, chart("1.0.0"), "")
		r.want(helm.ActionNone, chart("1.0.0"), "")
	})
	t.Run("second", func(t *testing.T) { newRelease(t).want(helm.ActionInstall, chart("2.0.0"), "") })

	if got := get().Annotations["from"]; got != "1.0.0" {
		t.Errorf("the CRD is from %q: an existing one was overwritten", got)
	}
}
