package deploy

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// ownValues ask for certificates of the user's.
func ownValues(t *testing.T, authority string) string {
	t.Helper()

	return merged(t, `certificates: {certManager: {enabled: false}, serving: {secretName: our-api}, metrics: {secretName: our-metrics}}`,
		"certificates: {caBundle: "+quoted(t, authority)+"}")
}

func quoted(t *testing.T, text string) string {
	t.Helper()

	content, err := (&unstructured.Unstructured{Object: map[string]any{"kind": text}}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(content)), `{"kind":`), "}")
}

// issueOwn makes an authority, and Secrets of the user's for the names in the release's namespace.
func issueOwn(t *testing.T) (authority string, secrets map[string]map[string]string) {
	t.Helper()

	ca := newCertificate(t, map[string]any{"isCA": true, "commonName": "ours", "secretName": "unused"}, nil)
	secrets = map[string]map[string]string{}

	for name, service := range map[string]string{"our-api": "omni-apiserver", "our-metrics": "omni-controller-metrics"} {
		leaf := newCertificate(t, map[string]any{"dnsNames": []any{service + "." + namespace + ".svc"}, "secretName": name}, ca)
		secrets[name] = leaf.files
	}

	return ca.files["tls.crt"], secrets
}

// TestOwnCertificates: without cert-manager nothing of it is rendered, and the Secrets and the authority of the user's take
// the place of what it makes, everywhere.
func TestOwnCertificates(t *testing.T) {
	authority, _ := issueOwn(t)

	for set, values := range valueSets(t) {
		files := mustRender(t, merged(t, values, ownValues(t, authority)))
		for _, never := range []string{"cert-manager.io", "omni-apiserver-tls", "omni-apiserver-ca", "omni-controller-metrics-tls"} {
			if strings.Contains(stream(files), never) {
				t.Errorf("%s: there is %s", set, never)
			}
		}

		if problems := inconsistencies(t, files); len(problems) > 0 {
			t.Errorf("%s:\n%s", set, strings.Join(problems, "\n"))
		}

		registration := find(t, decode(t, stream(files)), "APIService", "v1alpha1.omni.texashpc.com")
		if bundle, err := base64.StdEncoding.DecodeString(text(t, registration.Object, "spec", "caBundle")); err != nil || string(bundle) != authority {
			t.Errorf("%s: caBundle is %q, %v", set, bundle, err)
		}
	}

	arguments := podsOf(t, ownValues(t, authority))["omni-controller"].Containers[0].Args
	if want := "--protected-secrets=" + namespace + "/our-api," + namespace + "/our-metrics"; !slices.Contains(arguments, want) {
		t.Errorf("the controller has no %s: %v", want, arguments)
	}
}

// TestOwnCertificatesAlone: the certificate of the metrics and the authority may be left out, each with what follows.
func TestOwnCertificatesAlone(t *testing.T) {
	const values = `certificates: {certManager: {enabled: false}, serving: {secretName: our-api}}`

	files, err := render(values)
	if err != nil {
		t.Fatal(err)
	}

	if text := stream(files); strings.Contains(text, "\n  caBundle:") || strings.Contains(text, "metrics-tls") || strings.Contains(text, "--metrics-cert-path") {
		t.Error("something that was not given is rendered")
	}

	if !strings.Contains(files["NOTES.txt"], "Set certificates.caBundle") || !strings.Contains(files["NOTES.txt"], "Secret our-api") {
		t.Errorf("the notes do not say what is missing:\n%s", files["NOTES.txt"])
	}

	for values, want := range map[string]string{
		merged(t, values, `monitoring: {serviceMonitor: {enabled: true}}`):       "name its Secret in certificates.metrics.secretName",
		`certificates: {certManager: {enabled: false}}`:                          "/certificates/serving/secretName",
		`certificates: {serving: {secretName: our-api}}`:                         "/certificates/serving/secretName",
		`certificates: {metrics: {secretName: our-metrics}}`:                     "/certificates/metrics/secretName",
		`certificates: {caBundle: "-----BEGIN CERTIFICATE-----"}`:                "/certificates/caBundle",
		merged(t, values, `certificates: {caBundle: "/etc/ssl/ca.crt"}`):         "/certificates/caBundle",
		merged(t, values, `certificates: {certManager: {enabled: "false"}}`):     "/certificates/certManager/enabled",
		merged(t, values, `certificates: {serving: {secretName: "Our Secret"}}`): "/certificates/serving/secretName",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}

	// Without TLS for the metrics there is nothing to name.
	mustRender(t, merged(t, values, `{controller: {metrics: {secure: false}}, monitoring: {serviceMonitor: {enabled: true}}}`))
}

// TestRunWithOwnCertificates: on a real hub, with the user's Secrets and authority, kube-apiserver recognises omni-apiserver,
// and Prometheus the controllers.
func TestRunWithOwnCertificates(t *testing.T) {
	t.Parallel()

	hub := startHub(t)

	binaries, err := env.BuildBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}

	authority, secrets := issueOwn(t)
	r := prepare(t, hub, merged(t, ownValues(t, authority), `{podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null},
		monitoring: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboards: {enabled: true}}}`))
	r.secrets = secrets

	kubectl(t, hub, r.manifest, "apply", "--server-side", "-f", "-")
	r.start(t, binaries, nil)
	useAPI(t, r, namespace)
	checkMetrics(t, r)
	r.stop(t)
}
