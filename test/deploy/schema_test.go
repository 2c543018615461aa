package deploy

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRefusedValues: a mistake is an error before anything is installed, and the error names its place.
func TestRefusedValues(t *testing.T) {
	for _, tc := range []struct{ name, values, want string }{
		{"unknown at the top", `replicas: 2`, "replicas"},
		{"unknown below", `apiserver: {etcd: {embedded: {enable: true}}}`, "enable"},
		{"unknown in the controller", `controller: {allnamespaces: true}`, "allnamespaces"},
		{"both storages", `apiserver: {etcd: {external: {servers: ["https://etcd:2379"], tlsSecretName: etcd}}}`, "/apiserver/etcd"},
		{"no storage", `apiserver: {etcd: {embedded: {enabled: false}}}`, "/apiserver/etcd"},
		{
			"external etcd without certificates",
			`apiserver: {etcd: {embedded: {enabled: false}, external: {servers: ["https://etcd:2379"]}}}`, "/apiserver/etcd",
		},
		{
			"external etcd without TLS",
			`apiserver: {etcd: {embedded: {enabled: false}, external: {servers: ["http://etcd:2379"], tlsSecretName: etcd}}}`, "servers/0",
		},
		{
			"external etcd without a port",
			`apiserver: {etcd: {embedded: {enabled: false}, external: {servers: ["https://etcd"], tlsSecretName: etcd}}}`, "servers/0",
		},
		{"more Pods on one volume", `apiserver: {replicas: 2}`, "replicas"},
		{"a volume for many", `apiserver: {etcd: {embedded: {persistence: {accessMode: ReadWriteMany}}}}`, "accessMode"},
		{"all and some namespaces", `controller: {allNamespaces: true, namespaces: [a]}`, "/controller"},
		{"not a namespace", `controller: {namespaces: ["Team A"]}`, "namespaces/0"},
		{"a namespace twice", `controller: {namespaces: [a, a]}`, "namespaces"},
		{"no controller", `controller: {replicas: 0}`, "replicas"},
		{"replicas as text", `controller: {replicas: "2"}`, "replicas"},
		{"no port", `networkPolicy: {kubeAPIServerPorts: []}`, "kubeAPIServerPorts"},
		{"port out of range", `networkPolicy: {webhookPorts: [70000]}`, "webhookPorts/0"},
		{"not a flag", `apiserver: {extraArgs: ["v=2"]}`, "extraArgs/0"},
		{"flags in one text", `controller: {extraArgs: "--v=2"}`, "extraArgs"},
		// Helm's own warning about a table in the place of a list is about this one, and right.
		{"environment as a map", `controller: {extraEnv: {A: b}}`, "extraEnv"},
		{"not a digest", `image: {digest: latest}`, "digest"},
		{"upper case in the repository", `image: {repository: "UPPER"}`, "repository"},
		{"tag in the repository", `image: {repository: "registry:5000/operator:v1"}`, "repository"},
		{"tag in the name", `image: {repository: "operator:v1"}`, "repository"},
		{"interval without unit", `apiserver: {etcd: {embedded: {snapshots: {interval: 12}}}}`, "interval"},
		{"issuer as a name", `certificates: {serving: {issuerRef: pki}}`, "issuerRef"},
		{"duration without unit", `certificates: {serving: {duration: "90"}}`, "duration"},
		{"more digits than a duration has", `certificates: {ca: {duration: 1000000000h}}`, "duration"},
		{"days", `certificates: {ca: {renewBefore: 30d}}`, "renewBefore"},
		{"no quantity", `apiserver: {resources: {limits: {memory: lots}}}`, "memory"},
		{"quota out of range", `apiserver: {etcd: {embedded: {quotaBackendBytes: 1024}}}`, "quotaBackendBytes"},
		{"no snapshots kept", `apiserver: {etcd: {embedded: {snapshots: {retention: 0}}}}`, "retention"},
		{"label that is no text", `commonLabels: {a: 1}`, "commonLabels"},
		{"address that is no network", `controller: {deniedNetworks: [10.1.2.3]}`, "deniedNetworks"},
		{"name that is no network", `controller: {allowedNetworks: [localhost]}`, "allowedNetworks"},
		{"hub's ID that is no value of a label", `hubID: "-a"`, "hubID"},
		{"flags through names", `managementClusterName: "a b"`, "managementClusterName"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := render(tc.values)
			if err == nil {
				t.Fatal("accepted")
			}

			if !strings.Contains(err.Error(), "values don't meet the specifications of the schema") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error does not name %q: %v", tc.want, err)
			}
		})
	}
}

// TestRefusedDurations: what cert-manager's webhook would refuse half-way through an installation, and what would let the
// authority expire while its certificates are in use, is an error before anything is installed.
func TestRefusedDurations(t *testing.T) {
	for _, tc := range []struct{ name, values, want string }{
		{"an hour is enough", `{ca: {duration: 4h, renewBefore: 2h}, serving: {duration: 1h, renewBefore: 5m}}`, ""},
		{"parts of hours", `{serving: {duration: 90m, renewBefore: 30m30s}}`, ""},
		{"leading zeros", `{serving: {duration: 010h, renewBefore: 08h}}`, ""},
		{"a short certificate", `{serving: {duration: 59m59s, renewBefore: 5m}}`, "certificates.serving.duration: 59m59s is less than 1h"},
		{"a short authority", `{ca: {duration: 30m, renewBefore: 5m}}`, "certificates.ca.duration: 30m is less than 1h"},
		{"renewed too late", `{serving: {duration: 24h, renewBefore: 4m59s}}`, "certificates.serving.renewBefore: 4m59s is less than 5m"},
		{"duration alone", `{serving: {duration: 24h}}`, "certificates.serving.renewBefore: 720h is not less than certificates.serving.duration (24h): set both"},
		{"duration of the authority alone", `{ca: {duration: 720h}}`, "certificates.ca.renewBefore: 8760h is not less than certificates.ca.duration (720h)"},
		{"renewed at once", `{serving: {duration: 24h, renewBefore: 24h}}`, "certificates.serving.renewBefore: 24h is not less"},
		{"longer than a number", `{ca: {duration: 2562048h, renewBefore: 8760h}}`, "certificates.ca.duration: 2562048h is more than a hundred years"},
		{
			"an authority that expires before what it signed is renewed",
			`{ca: {duration: 2160h, renewBefore: 1440h}}`, "certificates.ca.renewBefore: 1440h has to be more than certificates.serving.duration - certificates.serving.renewBefore (2160h - 720h)",
		},
		{"an hour more", `{ca: {duration: 2160h, renewBefore: 1441h}}`, ""},
		{"an issuer of the user's", `{ca: {duration: 1h, renewBefore: 1h}, serving: {issuerRef: {name: pki}}}`, ""},
		{"short, with an issuer of the user's", `{serving: {duration: 1m, issuerRef: {name: pki}}}`, "certificates.serving.duration: 1m is less than 1h"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := render(`{certificates: ` + tc.values + `}`)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestSchemaIsStrict: every object refuses unknown fields and every field is explained.
func TestSchemaIsStrict(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(chartDir, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}

	checkStrict(t, "", schema)
}

func checkStrict(t *testing.T, path string, schema map[string]any) {
	t.Helper()

	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}

	if schema["additionalProperties"] != false {
		t.Errorf("%s/ accepts unknown fields", path)
	}

	for name, value := range properties {
		field := value.(map[string]any)
		if field["description"] == nil {
			t.Errorf("%s/%s has no description", path, name)
		}

		checkStrict(t, path+"/"+name, field)
	}
}

// TestEveryValueIsListed: values.yaml shows each value of the schema, and nothing else.
func TestEveryValueIsListed(t *testing.T) {
	var schema, values map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(chartDir, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}

	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chartDir, "values.yaml"))), &values); err != nil {
		t.Fatal(err)
	}

	checkListed(t, "", schema, values)
}

func checkListed(t *testing.T, path string, schema, values map[string]any) {
	t.Helper()

	properties, _ := schema["properties"].(map[string]any)
	for name, field := range properties {
		value, listed := values[name]
		if !listed && path+name != "global" {
			t.Errorf("values.yaml does not have %s%s", path, name)
		}

		if inner, ok := value.(map[string]any); ok {
			checkListed(t, path+name+".", field.(map[string]any), inner)
		}
	}
}
