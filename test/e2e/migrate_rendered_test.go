package e2e

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// formerRenderedKinds are the resources of what the operator with CRDs renders into the template of a cluster.
var formerRenderedKinds = []string{"omniclusteraddons", "omniciliums"}

// The Secrets with what it has rendered of two OmniClusterAddons and an OmniCilium.
const (
	formerLogs, formerMetrics, formerNetwork = "a-logs-addon-manifest", "z-metrics-addon-manifest", "network-cilium-manifest"

	// The manifest of z-metrics comes first, by its name.
	formerRendered = `
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniClusterAddon
metadata: {name: a-logs}
spec: {clusterRef: {name: demo}, helm: {repository: "https://charts.example.com", chart: logs, version: 1.0.0}}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniClusterAddon
metadata: {name: z-metrics}
spec: {clusterRef: {name: demo}, manifestName: a-first, mode: one-time, helm: {repository: "https://charts.example.com", chart: metrics, version: 1.0.0}}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCilium
metadata: {name: network}
spec: {clusterRef: {name: demo}, chartVersion: 1.19.3, values: {kubeProxyReplacement: true}}
`
	// As the operator writes it into the template: documents without an object are left out, and a list is one.
	formerRenderedManifests = `{name: a-first, mode: one-time, inline: [{apiVersion: v1, kind: Namespace, metadata: {name: metrics}}]}, ` +
		`{name: a-logs, mode: full, inline: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: logs, namespace: default}, data: {level: "3", "on": "yes"}}]}]}, ` +
		`{name: cilium, mode: full, inline: [{apiVersion: v1, kind: ServiceAccount, metadata: {name: cilium, namespace: kube-system}}, ` +
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system}, data: {bpf-lb-map-max: "65536", ipam: kubernetes}}]}`
	formerRenderedPatch = `{name: disable-default-cni-for-cilium, inline: {cluster: {network: {cni: {name: none}}, proxy: {disabled: true}}}}`
)

// formerRenderedSecrets are the Secrets' content, as Helm renders charts.
var formerRenderedSecrets = map[string]string{
	formerMetrics: "---\n# Source: metrics/templates/namespace.yaml\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: \"metrics\"\n",
	formerLogs: "---\n# Source: logs/templates/empty.yaml\n---\n# Source: logs/templates/list.yaml\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n" +
		"  metadata: {namespace: default, name: logs}\n  data:\n    \"on\": 'yes'\n    level: \"3\"\n",
	formerNetwork: "---\n# Source: cilium/templates/serviceaccount.yaml\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: \"cilium\"\n  namespace: kube-system\n" +
		"---\n# Source: cilium/templates/configmap.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cilium-config\n  namespace: kube-system\ndata:\n" +
		"  # the mode of addresses\n  ipam: \"kubernetes\"\n\n  bpf-lb-map-max: \"65536\"\n",
}

// makeRendered makes what is rendered of demo, with the Secrets that belong to it.
func (m *former) makeRendered() {
	m.t.Helper()
	m.apply(formerRendered)

	var secrets []string

	for name, owner := range map[string]string{
		formerMetrics: "OmniClusterAddon z-metrics", formerLogs: "OmniClusterAddon a-logs", formerNetwork: "OmniCilium network",
	} {
		kind, of, _ := strings.Cut(owner, " ")
		text := strings.ReplaceAll(strings.TrimSuffix(formerRenderedSecrets[name], "\n"), "\n", "\n    ")
		secrets = append(secrets, fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: %s
  labels: {omni.texashpc.com/cluster: demo}
  ownerReferences: [{apiVersion: omni.texashpc.com/v1alpha1, kind: %s, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]
stringData:
  manifest.yaml: |
    %s
`, name, kind, of, m.run("get", strings.ToLower(kind), of, "-o", "jsonpath={.metadata.uid}"), text))
	}

	m.apply(secrets...)
}

// ownsRendered checks that the Secrets belong to what was rendered.
func (m *migrating) ownsRendered() {
	m.t.Helper()

	for name := range formerRenderedSecrets {
		secret := must(m.hub.Client().CoreV1().Secrets(m.name).Get(m.t.Context(), name, metav1.GetOptions{}))(m.t)
		if len(secret.OwnerReferences) != 1 {
			m.t.Errorf("%s: %+v", name, secret.OwnerReferences)
		}
	}
}

// keepsRendered checks that the manifests of demo read what was rendered, and that the Secrets are nobody's.
func (m *migrating) keepsRendered() {
	t := m.t
	t.Helper()

	var read []string

	for _, manifest := range get[v1alpha1.OmniCluster](m.space, "ocl", "demo").Spec.Kubernetes.Manifests {
		if from := manifest.ValueFrom; from != nil {
			read = append(read, from.SecretKeyRef.Name)
		}
	}

	if want := fmt.Sprint([]string{formerMetrics, formerLogs, formerNetwork}); fmt.Sprint(read) != want {
		t.Errorf("the manifests of demo read %v, want %s", read, want)
	}

	for name := range formerRenderedSecrets {
		secret := must(m.hub.Client().CoreV1().Secrets(m.name).Get(t.Context(), name, metav1.GetOptions{}))(t)
		if len(secret.OwnerReferences) > 0 || strings.TrimSpace(string(secret.Data["manifest.yaml"])) != strings.TrimSpace(formerRenderedSecrets[name]) {
			t.Errorf("%s: %+v\n%s", name, secret.OwnerReferences, secret.Data["manifest.yaml"])
		}
	}
}
