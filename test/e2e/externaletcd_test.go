package e2e

import (
	"context"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// With --etcd-servers the API server keeps its objects in an etcd of somebody else, here that of
// the kube-apiserver, and finds them there after a restart.
func TestExternalEtcd(t *testing.T) {
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
		Args: append(hub.EtcdArgs(), "--etcd-data-dir="),
	})
	if err != nil {
		t.Fatal(err)
	}

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
