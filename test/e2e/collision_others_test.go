package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// definitions writes the other operator's definitions into a file and returns its name.
func (c *collision) definitions() string {
	c.t.Helper()

	var manifests []string
	for kind, plural := range map[string]string{
		"OmniConnection": "omniconnections", "OmniCluster": "omniclusters", "OmniControlPlane": "omnicontrolplanes",
		"OmniWorkers": "omniworkers", "OmniMachine": "omnimachines", "OmniKubeconfigExport": "omnikubeconfigexports",
		"OmniSecretSync": "omnisecretsyncs", "OmniHelmRelease": "omnihelmreleases",
	} {
		manifests = append(manifests, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s.omni.texashpc.com
spec:
  group: omni.texashpc.com
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s, singular: %[3]s}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, kind, plural, strings.ToLower(kind)))
	}

	path := filepath.Join(c.t.TempDir(), "definitions.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(manifests, "---\n")), 0o600); err != nil {
		c.t.Fatal(err)
	}

	return path
}

// theirObjects are what the other operator keeps: each with a finalizer that its controller would
// act on, a Secret that belongs to an export, and a webhook that nobody serves any more.
func theirObjects(endpoint string) []string {
	object := func(kind, name, spec string) string {
		return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: %s
metadata:
  name: %s
  finalizers: [omni.texashpc.com/finalizer]
spec: %s`, kind, name, spec)
	}

	return []string{
		object("OmniConnection", "omni", `{endpoint: "`+endpoint+`"}`),
		object("OmniCluster", "demo", `{connectionRef: {name: omni}, deletePolicy: {destroyMachines: true}}`),
		object("OmniControlPlane", "demo-cp", `{clusterRef: {name: demo}}`),
		object("OmniWorkers", "by-hand", `{clusterRef: {name: demo}}`),
		object("OmniKubeconfigExport", "demo", `{clusterRef: {name: demo}, deletionPolicy: Delete}`),
		object("OmniHelmRelease", "demo", `{clusterRef: {name: demo}}`),
		`apiVersion: v1
kind: Secret
metadata:
  name: demo-kubeconfig
  ownerReferences:
    - {apiVersion: v1, kind: ConfigMap, name: of-somebody-else, uid: 00000000-0000-0000-0000-000000000002}
    - {apiVersion: omni.texashpc.com/v1alpha1, kind: OmniKubeconfigExport, name: demo, uid: 00000000-0000-0000-0000-000000000001}`,
		`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: acme-omni-cluster-operator-validating-webhook-configuration
webhooks:
  - name: validate.omni.texashpc.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {service: {namespace: omni-cluster-operator-system, name: gone}}
    rules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], resources: ["*"], operations: [UPDATE, DELETE]}]`,
	}
}

// shell runs a script with kubectl on its path, in a directory of its own.
func (c *collision) shell(script string) {
	c.t.Helper()

	ctx, cancel := context.WithTimeout(c.t.Context(), 2*eventually)
	defer cancel()

	out, err := c.hub.Shell(ctx, c.t.TempDir(), "set -x\n"+script)
	if err != nil {
		c.t.Fatalf("the steps failed: %v\n%s", err, out)
	}

	c.t.Logf("the steps:\n%s", out)
}

// shellBlocks returns the text of all blocks of a page below a heading that are marked sh, in their order.
func shellBlocks(t *testing.T, path, heading string) string {
	t.Helper()

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var (
		lines  []string
		inside bool
	)

	_, below, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", path, heading)
	}

	for line := range strings.Lines(below) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```sh"
		case inside:
			lines = append(lines, line)
		}
	}

	if len(lines) == 0 {
		t.Fatalf("%s has no commands", path)
	}

	return strings.Join(lines, "")
}
