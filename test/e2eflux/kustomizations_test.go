package e2eflux

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The clusters that the Kustomizations of test/testdata/seeds/flux deploy to, and the Kustomizations that those depend on.
var (
	seedClusters = []string{"control-plane", "hypervisor", "storage"}
	seedNeeds    = []string{"omni-cluster-operator", "omni-secrets", "control-plane-infrastructure", "storage-rook-operator"}
)

// seedKustomizations are the files as they are.
func seedKustomizations(t *testing.T) []string {
	t.Helper()

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	paths, err := filepath.Glob(filepath.Join(root, "test", "testdata", "seeds", "flux", "*.yaml"))
	if err != nil || len(paths) != 4 {
		t.Fatalf("%d files, %v", len(paths), err)
	}

	var manifests []string

	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		manifests = append(manifests, string(content))
	}

	return manifests
}

// seedCluster is a cluster with an exported kubeconfig where the Kustomizations look for it.
func seedCluster(name string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: %[1]s, namespace: flux-system}
spec: {connectionRef: {name: omni}, kubernetes: {version: v1.35.1}, talos: {version: v1.13.3}}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: %[1]s, namespace: flux-system}
spec: {clusterRef: {name: %[1]s}, machineClass: {name: general, size: 1}}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: %[1]s, namespace: flux-system}
spec:
  clusterRef: {name: %[1]s}
  targetSecretRef: {name: %[1]s-kubeconfig}
  serviceAccount: {user: flux, groups: [seed-deployers]}
  ttl: 24h
`, name)
}

// seedRepositories are the two repositories that the Kustomizations name, with the folders that they apply.
func (d *desk) seedRepositories(g *gitServer) {
	d.t.Helper()

	platform := map[string]string{
		"clusters/management/omni-clusters/connection.yaml": fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniConnection
metadata: {name: omni, namespace: flux-system}
spec:
  endpoint: %s
  caBundle: %s
  auth: {serviceAccountSecretRef: {name: %s}}
`, d.omni.Endpoint(), base64.StdEncoding.EncodeToString(d.omni.CAPEM()), keySecret),
	}
	apps := map[string]string{}

	for _, name := range seedClusters {
		platform["clusters/management/omni-clusters/"+name+".yaml"] = seedCluster(name)
		apps["clusters/"+name+"/app.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-app, namespace: default}\ndata: {from: git}\n"
	}

	for _, name := range seedNeeds {
		platform["needs/"+name+"/done.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-done, namespace: flux-system}\n"
	}

	g.commit("platform", platform)
	g.commit("c5c3-gitops", apps)

	for _, name := range []string{"platform", "c5c3-gitops"} {
		d.apply(fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s}\nspec: {interval: 1h, url: %s/%s, ref: {branch: main}}", name, g.url, name))
	}

	for _, name := range seedNeeds {
		d.apply(fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s}
spec: {interval: 1h, prune: true, path: ./needs/%[1]s, sourceRef: {kind: GitRepository, name: platform}}`, name))
	}
}

// The Kustomizations of the pages that this project was made for work as they are written: one applies our kinds and
// waits for them, three deploy with the kubeconfigs that these export.
func TestSeedKustomizations(t *testing.T) {
	d := newDesk(t)
	hub := d.attach(seedClusters[0])
	cert, key := hub.FrontProxyClient()

	for _, name := range seedClusters[1:] {
		if err := d.omni.AttachWorkload(name, omnisim.Workload{URL: hub.URL(), CA: hub.CA(), ProxyCert: cert, ProxyKey: key}); err != nil {
			t.Fatal(err)
		}
	}

	d.applyTo(hub, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seed-deployers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: seed-deployers}]`)

	d.seedRepositories(newGitServer(t))
	// What deploys to workload clusters goes before the kubeconfigs do.
	t.Cleanup(func() {
		args := []string{"-n", env.FluxNamespace, "delete", "kustomizations.kustomize.toolkit.fluxcd.io", "--ignore-not-found"}
		for _, name := range seedClusters {
			args = append(args, name+"-apps")
		}

		if _, _, err := stack.Kubectl(context.WithoutCancel(t.Context()), args...); err != nil {
			t.Error(err)
		}
	})
	d.apply(seedKustomizations(t)...)

	d.waitKustomization("omni-clusters")

	// Those that came before their kubeconfig try again after their interval, ten minutes; `flux reconcile` does at once.
	for _, name := range seedClusters {
		d.run("annotate", "kustomization", name+"-apps", "reconcile.fluxcd.io/requestedAt=now", "--overwrite")
		d.waitKustomization(name + "-apps")
	}

	for _, name := range seedClusters {
		if _, err := hub.Client().CoreV1().ConfigMaps("default").Get(t.Context(), name+"-app", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// waitKustomization waits until a Kustomization has applied a commit.
func (d *desk) waitKustomization(name string) {
	d.t.Helper()
	d.wait("Kustomization "+name, func() error {
		state, err := tryGet[object](d, "kustomization", name)
		if err != nil {
			return err
		}

		if !meta.IsStatusConditionTrue(state.Status.Conditions, "Ready") || !strings.HasPrefix(state.Status.LastAppliedRevision, "main@") {
			return fmt.Errorf("it says %+v", state.Status.Conditions)
		}

		return nil
	})
}
