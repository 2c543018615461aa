package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestCombinations looks for what breaks when values meet: each of these with each set of values, and all together.
func TestCombinations(t *testing.T) {
	alone := map[string]string{
		"one controller":          `{controller: {replicas: 1}}`,
		"many namespaces":         `{controller: {namespaces: [a, b, ` + strings.Repeat("c", 63) + `, team-a, team-b]}}`,
		"no policies":             `{networkPolicy: {enabled: false}}`,
		"no webhooks":             `{networkPolicy: {webhookPorts: []}}`,
		"metrics in plain text":   `{controller: {metrics: {secure: false}}}`,
		"metrics":                 `{monitoring: {serviceMonitor: {enabled: true}}}`,
		"alerts":                  `{monitoring: {prometheusRule: {enabled: true}}}`,
		"dashboards elsewhere":    `{monitoring: {dashboards: {enabled: true, namespace: grafana}}}`,
		"an issuer of the user's": `{certificates: {serving: {issuerRef: {kind: ClusterIssuer, name: pki}}}}`,
		"labels": `{commonLabels: {team: a, release: b}, apiserver: {podLabels: {team: c}}, controller: {podLabels: {team: d}},
			monitoring: {serviceMonitor: {enabled: true, labels: {release: e}}, prometheusRule: {enabled: true, labels: {release: f}}}}`,
		"annotation of ours": `{apiserver: {podAnnotations: {kubectl.kubernetes.io/default-container: other}}}`,
		"no audit":           `{apiserver: {audit: {enabled: false, policyConfigMap: left-over}}}`,
		"numbers as amounts": `{apiserver: {resources: {requests: {cpu: 1, memory: 268435456}, limits: {memory: null}}}}`,
		"no resources":       `{apiserver: {resources: {requests: null, limits: null}}, controller: {resources: {limits: {cpu: 0.5}}}}`,
		"no snapshots":       `{apiserver: {etcd: {embedded: {snapshots: {interval: 0}}}}}`,
		"texts like numbers": `{managementClusterName: "1e3:", image: {tag: "1.10"}, commonLabels: {"on": "true", "y": "1.0"}}`,
	}

	for set, base := range valueSets(t) {
		together := []string{base}

		for name, values := range alone {
			if set == "all-namespaces" && name == "many namespaces" {
				continue // the schema refuses both together
			}

			together = append(together, values)
			checkCombination(t, set+", "+name, merged(t, base, values))
		}

		checkCombination(t, set+", all", merged(t, together...))
	}
}

func checkCombination(t *testing.T, name, values string) {
	t.Helper()

	if problems := inconsistencies(t, mustRender(t, values)); len(problems) > 0 {
		t.Errorf("%s:\n%s", name, strings.Join(problems, "\n"))
	}
}

// merged lays values over others, as several --values do.
func merged(t *testing.T, texts ...string) string {
	t.Helper()

	result := map[string]any{}

	for _, text := range texts {
		over := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &over); err != nil {
			t.Fatal(err)
		}

		lay(result, over)
	}

	text, err := yaml.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func lay(under, over map[string]any) {
	for name, value := range over {
		inner, isMap := value.(map[string]any)
		if existing, ok := under[name].(map[string]any); ok && isMap {
			lay(existing, inner)

			continue
		}

		if isMap {
			copied := map[string]any{}
			lay(copied, inner)
			value = copied
		}

		under[name] = value
	}
}

// TestOtherNames: the name of the release shows nowhere, so that it may be as long as Helm allows, and the namespace
// is the release's wherever it is named: certificates, annotations, subjects, flags.
func TestOtherNames(t *testing.T) {
	other := "o" + strings.Repeat("x", 61) + "1"

	for set, values := range valueSets(t) {
		want := strings.ReplaceAll(stream(mustRender(t, values)), namespace, other)

		files, err := renderAs(strings.Repeat("r", 53), other, values)
		if err != nil {
			t.Fatal(err)
		}

		if got := stream(installed(files)); got != want {
			t.Errorf("%s: in another namespace and by another name, something else is rendered:\n%s", set, got)
		}
	}
}

// TestIssuerOfTheUser: with an issuer of theirs, nothing makes an authority of our own, and nobody else is asked.
func TestIssuerOfTheUser(t *testing.T) {
	objects := decode(t, stream(mustRender(t, `certificates: {serving: {issuerRef: {kind: ClusterIssuer, name: pki, group: pki.example.com}}}`)))

	leaves := []string{"omni-apiserver-tls", "omni-controller-metrics-tls"}

	for _, object := range objects {
		if kind := object.GetKind(); kind == "Issuer" || kind == "Certificate" && !slices.Contains(leaves, object.GetName()) {
			t.Errorf("there is %s", identity(object))
		}
	}

	for _, leaf := range leaves {
		issuer, _, err := unstructured.NestedStringMap(find(t, objects, "Certificate", leaf).Object, "spec", "issuerRef")
		if want := map[string]string{"kind": "ClusterIssuer", "name": "pki", "group": "pki.example.com"}; err != nil || !maps.Equal(issuer, want) {
			t.Errorf("%s is asked for at %v (%v), want %v", leaf, issuer, err, want)
		}
	}
}
