package e2eflux

import (
	"encoding/base64"
	"fmt"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// Manifests of our kinds, as they stand in a repository.

// ours is an object of one of our kinds; spec is indented by two.
func ours(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: omni.texashpc.com/v1alpha1\nkind: %s\nmetadata:\n  name: %s\n  namespace: flux-system\nspec:\n%s\n", kind, name, strings.Trim(spec, "\n"))
}

// documents joins manifests to one file.
func documents(manifests ...string) string { return strings.Join(manifests, "---\n") }

func (d *desk) connection() string {
	return ours("OmniConnection", "omni", fmt.Sprintf(`
  endpoint: %s
  caBundle: %s
  auth:
    serviceAccountSecretRef: {name: %s}`, d.omni.Endpoint(), base64.StdEncoding.EncodeToString(d.omni.CAPEM()), keySecret))
}

// cluster has extra lines of spec.
func cluster(name string, extra ...string) string {
	return ours("OmniCluster", name, `
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
`+strings.Join(extra, "\n"))
}

// set is an OmniControlPlane or OmniWorkers of a cluster with machines of class general.
func set(kind, name, of string, size int) string {
	return ours(kind, name, fmt.Sprintf("  clusterRef: {name: %s}\n  machineClass: {name: general, size: %d}", of, size))
}

// export writes a kubeconfig for group deployers into the Secret of the same name.
func export(name, of, policy string) string {
	return ours("OmniKubeconfigExport", name, fmt.Sprintf(`
  clusterRef: {name: %s}
  targetSecretRef: {name: %s}
  serviceAccount: {user: deployer, groups: [deployers]}
  ttl: 24h
  renewBefore: 4h
  deletionPolicy: %s`, of, name, policy))
}

// secretSync copies Secret registry to a Secret of the sync's name.
func secretSync(name, of, kubeconfig, namespace, policy string) string {
	return ours("OmniSecretSync", name, fmt.Sprintf(`
  clusterRef: {name: %s}
  kubeconfigSecretRef: {name: %s}
  sourceSecretRef: {name: registry}
  targetSecretRef: {name: %s, namespace: %s}
  createNamespace: true
  deletionPolicy: %s`, of, kubeconfig, name, namespace, policy))
}

// helmRelease installs chart settings, one ConfigMap named by the release, in namespace apps.
func (d *desk) helmRelease(name, of, kubeconfig, policy string) string {
	return ours("OmniHelmRelease", name, fmt.Sprintf(`
  clusterRef: {name: %s}
  kubeconfigSecretRef: {name: %s}
  namespace: apps
  createNamespace: true
  chart: {repository: %q, chart: settings, version: 1.0.0}
  deletionPolicy: %s`, of, kubeconfig, d.charts(), policy))
}

// charts starts a repository with chart settings, and returns its URL.
func (d *desk) charts() string {
	repository := chartserver.StartRepository()
	d.t.Cleanup(repository.Close)
	repository.Add(chartserver.ConfigMapChart("settings", "1.0.0"))

	return repository.URL()
}

// registrySecret is what is copied; a repository would hold it encrypted.
const registrySecret = `apiVersion: v1
kind: Secret
metadata: {name: registry}
type: kubernetes.io/basic-auth
stringData: {username: robot, password: secret}`

// deployers gives the exported group the rights of an administrator in a workload cluster.
const deployers = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: deployers}]`

// anchor keeps a directory of the source from being empty.
const anchor = `apiVersion: v1
kind: ConfigMap
metadata: {name: anchor, namespace: flux-system}
`
