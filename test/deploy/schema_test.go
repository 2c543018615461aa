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
		{"days", `certificates: {ca: {renewBefore: 30d}}`, "renewBefore"},
		{"no quantity", `apiserver: {resources: {limits: {memory: lots}}}`, "memory"},
		{"quota out of range", `apiserver: {etcd: {embedded: {quotaBackendBytes: 1024}}}`, "quotaBackendBytes"},
		{"no snapshots kept", `apiserver: {etcd: {embedded: {snapshots: {retention: 0}}}}`, "retention"},
		{"label that is no text", `commonLabels: {a: 1}`, "commonLabels"},
		{"address that is no network", `controller: {deniedNetworks: [10.1.2.3]}`, "deniedNetworks"},
		{"name that is no network", `controller: {allowedNetworks: [localhost]}`, "allowedNetworks"},
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
