package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Manifests of one cluster, as a user writes them. Machine IDs are those of addMachines.

// secretManifest is the Secret of a key that may be used with the endpoint.
func secretManifest(name, key, endpoint string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: %s
  annotations: {omni.texashpc.com/allowed-endpoints: %q}
stringData:
  serviceAccountKey: %q`, name, endpoint, key)
}

func connectionManifest(name, endpoint, secret, ca string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniConnection
metadata:
  name: %s
spec:
  endpoint: %s
  caBundle: %s
  auth:
    serviceAccountSecretRef:
      name: %s`, name, endpoint, base64.StdEncoding.EncodeToString([]byte(ca)), secret)
}

// clusterManifest has extra lines of spec, indented by two.
func clusterManifest(name string, extra ...string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata:
  name: %s
spec:
  connectionRef:
    name: omni
  kubernetes:
    version: v1.35.1
  talos:
    version: v1.13.3
%s`, name, strings.Join(extra, "\n"))
}

func controlPlaneManifest(name, cluster string, machines ...string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata:
  name: %s
spec:
  clusterRef:
    name: %s
  machines: [%s]`, name, cluster, strings.Join(machines, ", "))
}

func workersManifest(name, cluster, machines string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniWorkers
metadata:
  name: %s
spec:
  clusterRef:
    name: %s
  %s`, name, cluster, machines)
}

func classOf(class string, size any) string {
	return fmt.Sprintf("machineClass: {name: %s, size: %v}", class, size)
}

func machineManifest(id, cluster string, extra ...string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniMachine
metadata:
  name: %s
spec:
  clusterRef:
    name: %s
%s`, id, cluster, strings.Join(extra, "\n"))
}
