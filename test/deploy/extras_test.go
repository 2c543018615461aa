package deploy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLabelsOfTheChart: a label that selectors need is refused in each place where users may give labels.
func TestLabelsOfTheChart(t *testing.T) {
	for _, values := range []string{
		`commonLabels: {app.kubernetes.io/name: mine}`,
		`apiserver: {podLabels: {app.kubernetes.io/name: mine}}`,
		`controller: {podLabels: {omni.texashpc.com/serves: mine}}`,
		`monitoring: {serviceMonitor: {enabled: true, labels: {app.kubernetes.io/part-of: mine}}}`,
		`monitoring: {prometheusRule: {enabled: true, labels: {helm.sh/chart: mine}}}`,
		`monitoring: {dashboards: {enabled: true, labels: {app.kubernetes.io/name: mine}}}`,
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), " is the chart's own: take it out of commonLabels") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestRepeatedFlags: more flags do not replace those that ports, probes and volumes were made for.
func TestRepeatedFlags(t *testing.T) {
	external := `etcd: {embedded: {enabled: false}, external: {servers: ["https://etcd:2379"], tlsSecretName: etcd}}`

	for _, tc := range []struct{ values, want string }{
		{`apiserver: {extraArgs: ["--secure-port=9443"]}`, "apiserver.extraArgs: --secure-port"},
		{`apiserver: {extraArgs: ["--v=2", "--secure-port", "9443"]}`, "extraArgs/2"},
		{`apiserver: {extraArgs: ["-secure_port=9443"]}`, "apiserver.extraArgs: --secure-port"},
		{`apiserver: {extraArgs: ["--etcd-data-dir=/elsewhere"]}`, "apiserver.extraArgs: --etcd-data-dir"},
		{`apiserver: {extraArgs: ["--controller-namespaces=a"]}`, "apiserver.extraArgs: --controller-namespaces"},
		{`apiserver: {extraArgs: ["--audit-log-path=/elsewhere"]}`, "apiserver.extraArgs: --audit-log-path"},
		{`apiserver: {` + external + `, extraArgs: ["--etcd-servers=https://other:2379"]}`, "apiserver.extraArgs: --etcd-servers"},
		{`{managementClusterName: a, controller: {extraArgs: ["--management-cluster-name=b"]}}`, "controller.extraArgs: --management-cluster-name"},
		{`{hubID: a, apiserver: {extraArgs: ["--hub-id=b"]}}`, "apiserver.extraArgs: --hub-id"},
		{`controller: {extraArgs: ["--namespace=a"]}`, "controller.extraArgs: --namespace"},
		{`controller: {allNamespaces: true, extraArgs: ["--all-namespaces=false"]}`, "controller.extraArgs: --all-namespaces"},
		{`controller: {extraArgs: ["--metrics-secure=false"]}`, "controller.extraArgs: --metrics-secure"},
		{`controller: {deniedNetworks: ["10.0.0.0/8"], extraArgs: ["--denied-networks=192.168.0.0/16"]}`, "controller.extraArgs: --denied-networks"},
		{`controller: {extraArgs: ["--leader-elect=false"]}`, "controller.extraArgs: --leader-elect"},
	} {
		if _, err := render(tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error does not name %q: %v", tc.values, tc.want, err)
		}
	}
}

// TestWhereKeysMayGo: the endpoints and the rule are flags of omni-controller, and nothing that is not an endpoint is taken.
func TestWhereKeysMayGo(t *testing.T) {
	files := mustRender(t, `controller: {allowedEndpoints: [https://a.example.com, "https://b.example.com:8443"], requireAllowedEndpoint: true}`)

	for _, want := range []string{"--omni-allowed-endpoints=https://a.example.com,https://b.example.com:8443", "--require-allowed-endpoint"} {
		if !strings.Contains(files["controller.yaml"], want) {
			t.Errorf("%s is missing", want)
		}
	}

	for _, wrong := range []string{"a.example.com", "https://*.example.com", "https://a,https://b", "https://a/path"} {
		if _, err := render(`controller: {allowedEndpoints: ["` + wrong + `"]}`); err == nil || !strings.Contains(err.Error(), "allowedEndpoints") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestProtectedSecrets: omni-controller uses none of this installation's Secrets, where it serves their namespace.
func TestProtectedSecrets(t *testing.T) {
	const all = `{image: {pullSecrets: [{name: pull}]}, apiserver: {encryption: {secretName: keys}}, controller: {protectedSecrets: [a/b], `

	for values, want := range map[string]string{
		all + `namespaces: [omni-cluster-operator-system]}}`: "--protected-secrets=omni-cluster-operator-system/omni-apiserver-ca," +
			"omni-cluster-operator-system/omni-apiserver-tls,omni-cluster-operator-system/omni-controller-metrics-tls," +
			`omni-cluster-operator-system/keys,omni-cluster-operator-system/pull,a/b"`,
		all + `namespaces: [team]}}`:  `--protected-secrets=a/b"`,
		all + `allNamespaces: true}}`: "omni-cluster-operator-system/pull,a/b",
	} {
		if files := mustRender(t, values); !strings.Contains(files["controller.yaml"], want) {
			t.Errorf("%s: %s is missing", values, want)
		}
	}

	for name, content := range mustRender(t, "") {
		if certificates := strings.Count(content, "kind: Certificate\n"); certificates != strings.Count(content, `omni.texashpc.com/protected: "true"`) {
			t.Errorf("%s: not every certificate is protected", name)
		}
	}

	for _, wrong := range []string{"a", "a/b/c", "A/b", "/b"} {
		if _, err := render(`controller: {protectedSecrets: ["` + wrong + `"]}`); err == nil || !strings.Contains(err.Error(), "protectedSecrets") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestExtraFlags: what the chart does not give may be given, at the end, and a stricter TLS takes the place of ours.
func TestExtraFlags(t *testing.T) {
	files := mustRender(t, `
apiserver:
  audit: {enabled: false}
  extraArgs: [--tls-min-version=VersionTLS13, --audit-log-path=/var/log/audit.log, --etcd=x]
controller: {extraArgs: [--leader-election-namespace=x]}`)

	for file, args := range map[string][]string{
		"apiserver.yaml":  {"--tls-min-version=VersionTLS13", "--audit-log-path=/var/log/audit.log", "--etcd=x"},
		"controller.yaml": {"--leader-election-namespace=x"},
	} {
		for _, arg := range args {
			if !strings.Contains(files[file], arg) {
				t.Errorf("%s has no %s", file, arg)
			}
		}
	}

	if strings.Contains(files["apiserver.yaml"], "VersionTLS12") {
		t.Error("the lowest version of TLS is given twice")
	}
}

// TestAlertForAnAbsentJob: nothing tells that the job of the ServiceMonitor is away where there is none, and the notes
// say what is missing.
func TestAlertForAnAbsentJob(t *testing.T) {
	for scraped, values := range map[bool]string{
		true:  `monitoring: {prometheusRule: {enabled: true}, serviceMonitor: {enabled: true}}`,
		false: `monitoring: {prometheusRule: {enabled: true}}`,
	} {
		files, err := render(values)
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Contains(files["monitoring.yaml"], "absent("); got != scraped {
			t.Errorf("%s: there is an alert for an absent job: %t", values, got)
		}

		if got := strings.Contains(files["NOTES.txt"], "monitoring.serviceMonitor.enabled"); got == scraped {
			t.Errorf("%s: the notes ask for the ServiceMonitor: %t", values, got)
		}
	}
}

// TestNotesOfImage: the notes name the image that runs, and say when the values keep one that is not the chart's.
func TestNotesOfImage(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	version := loaded(t).Metadata.AppVersion

	for values, want := range map[string][]string{
		"":                                  {"omni-cluster-operator:" + version + "."},
		"image: {tag: " + version + "}":     {"omni-cluster-operator:" + version + "."},
		"image: {tag: v0.0.9}":              {"omni-cluster-operator:v0.0.9.", "image.tag is not " + version},
		"image: {digest: '" + digest + "'}": {"omni-cluster-operator@" + digest + "."},
		"image: {tag: v0.0.9, digest: '" + digest + "'}": {"omni-cluster-operator@" + digest + ".", "image.tag does nothing"},
	} {
		files, err := render(values)
		if err != nil {
			t.Fatal(err)
		}

		notes := files["NOTES.txt"]
		if got := strings.Count(notes, "\nimage.tag "); got != len(want)-1 {
			t.Errorf("%s: %d notes about the tag:\n%s", values, got, notes)
		}

		for _, part := range want {
			if !strings.Contains(notes, part) {
				t.Errorf("%s: want %q in\n%s", values, part, notes)
			}
		}
	}
}

// TestNotesOfSmallVolume: the notes say when the snapshots' own volume has no room for as many as are kept, and one more.
func TestNotesOfSmallVolume(t *testing.T) {
	const enabled = `apiserver: {etcd: {embedded: {snapshots: {persistence: {enabled: true}}}}}`

	for values, want := range map[string]string{
		``:      "",
		enabled: "size: 8Gi) has no room for 6 copies of a database as large\nas quotaBackendBytes allows: snapshots will fail when the database has more than 1365 MiB",
		`apiserver: {etcd: {embedded: {snapshots: {persistence: {size: 12G}}}}}`:   "more than 1907 MiB",
		`apiserver: {etcd: {embedded: {snapshots: {persistence: {size: 12Gi}}}}}`:  "",
		`apiserver: {etcd: {embedded: {snapshots: {persistence: {size: 0.5Ti}}}}}`: "",
		`apiserver: {etcd: {embedded: {snapshots: {retention: 3}}}}`:               "",
		`apiserver: {etcd: {embedded: {snapshots: {retention: 4}}}}`:               "5 copies",
		`apiserver: {etcd: {embedded: {quotaBackendBytes: 1073741824}}}`:           "",
		valueSets(t)["external-etcd"]:                                              "",
	} {
		if values != "" {
			values = merged(t, enabled, values)
		}

		files, err := render(values)
		if err != nil {
			t.Fatal(err)
		}

		notes := files["NOTES.txt"]
		if got := strings.Contains(notes, "The volume of the snapshots"); got != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%s: want %q in\n%s", values, want, notes)
		}
	}
}

// TestAlertForOldSnapshots: what is old follows the interval, and nothing is where none are taken.
func TestAlertForOldSnapshots(t *testing.T) {
	for values, want := range map[string]string{
		``: " > 86400",
		`apiserver: {etcd: {embedded: {snapshots: {interval: 1h30m}}}}`: " > 10800",
		`apiserver: {etcd: {embedded: {snapshots: {interval: 0}}}}`:     "",
		`apiserver: {etcd: {embedded: {snapshots: {interval: "0"}}}}`:   "",
		`apiserver: {etcd: {embedded: {snapshots: {interval: 0h}}}}`:    "",
		valueSets(t)["external-etcd"]:                                   "",
	} {
		objects := decode(t, stream(mustRender(t, merged(t, values, `monitoring: {prometheusRule: {enabled: true}}`))))

		got := expressionOf(t, find(t, objects, "PrometheusRule", "omni-cluster-operator"), "OmniSnapshotOld")
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want one with %q", values, got, want)
		}
	}
}

// expressionOf is what an alert of a PrometheusRule asks for; empty if there is no such alert.
func expressionOf(t *testing.T, rule *unstructured.Unstructured, alert string) string {
	t.Helper()

	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}

	for _, group := range groups {
		rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
		for _, one := range rules {
			if one := one.(map[string]any); one["alert"] == alert {
				return text(t, one, "expr")
			}
		}
	}

	return ""
}
