package e2e

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// With --etcd-servers the API server keeps its objects in an etcd of somebody else, here that of
// the kube-apiserver, and finds them there after a restart. It behaves as an older Kubernetes would if told so.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()

	hub, err := env.StartHub(t.Context(), env.Options{Progress: t.Output(), WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	api, err := hub.StartOmniAPIServer(t.Context(), env.OmniAPIServerOptions{
		Args: append(hub.EtcdArgs(), "--etcd-data-dir=", "--emulated-version=kube=1.36", "--min-compatibility-version=kube=1.35"),
	})
	if err != nil {
		t.Fatal(err)
	}

	checkEmulation(t, api)

	manifest := clusterManifest("kept", "  suspend: true")
	if _, _, err := hub.KubectlInput(t.Context(), strings.NewReader(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	api.Kill()

	if err := api.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := env.Eventually(t.Context(), eventually, "the object", func(ctx context.Context) error {
		_, _, err := hub.Kubectl(ctx, "get", "ocl", "kept")

		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func checkEmulation(t *testing.T, api *env.OmniAPIServer) {
	t.Helper()

	client, err := discovery.NewDiscoveryClientForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	got, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}

	if got.EmulationMajor != "1" || got.EmulationMinor != "36" || got.MinCompatibilityMinor != "35" {
		t.Errorf("it emulates %s.%s, compatible with 1.%s; want 1.36 and 1.35", got.EmulationMajor, got.EmulationMinor, got.MinCompatibilityMinor)
	}
}
