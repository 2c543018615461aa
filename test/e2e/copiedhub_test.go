package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// copiedHub is a second management cluster with the objects that the shared one had when it was made, all with the same
// UIDs: a snapshot of the one was restored into the other. No controller runs there before somebody asks for one.
type copiedHub struct{ *env.Stack }

// copyHub makes one, of the objects as they are now. It ends with the test.
func copyHub(t *testing.T) copiedHub {
	t.Helper()

	dir, err := os.MkdirTemp("", "copy-")
	if err != nil {
		t.Fatal(err)
	}

	saved := filepath.Join(dir, "saved.db")
	apiServerCommand(t, "snapshot", "save", saved, "--etcd-data-dir="+stack.OmniAPIServer.EtcdDataDir)
	apiServerCommand(t, "snapshot", "restore", saved, "--etcd-data-dir="+filepath.Join(dir, "omni-etcd"))

	hub, err := env.StartHub(t.Context(), env.Options{Dir: dir, WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}

		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	copied := &env.Stack{Hub: hub}
	if copied.OmniAPIServer, err = hub.StartOmniAPIServer(t.Context(), env.OmniAPIServerOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := hub.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}

	return copiedHub{copied}
}

// of starts a controller for the fleet's namespace on the copy, with the Secrets and ConfigMaps that the fleet has now,
// and returns the fleet as the copy sees it. args are more flags of that controller, such as --hub-id.
func (c copiedHub) of(f *fleet, args ...string) *fleet {
	f.t.Helper()

	copied := &fleet{space: &space{t: f.t, name: f.name, hub: c.Stack}, omni: f.omni, key: f.key, machines: f.machines}
	copied.explainsFailure()
	copied.run("create", "namespace", f.name)
	c.copyContents(f)

	if _, err := c.StartController(f.t.Context(), env.ControllerOptions{
		Name: "controller-" + f.name, Namespace: f.name, DestroySettleTime: settleTime, Args: args,
	}); err != nil {
		f.t.Fatal(err)
	}

	return copied
}

func (c copiedHub) copyContents(f *fleet) {
	f.t.Helper()

	bare := func(meta metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: meta.Name, Labels: meta.Labels, Annotations: meta.Annotations, OwnerReferences: meta.OwnerReferences,
		}
	}

	from, to := stack.Client().CoreV1(), c.Client().CoreV1()

	secrets := must(from.Secrets(f.name).List(f.t.Context(), metav1.ListOptions{}))(f.t)
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		must(to.Secrets(f.name).Create(f.t.Context(),
			&corev1.Secret{ObjectMeta: bare(secret.ObjectMeta), Type: secret.Type, Data: secret.Data}, metav1.CreateOptions{}))(f.t)
	}

	configMaps := must(from.ConfigMaps(f.name).List(f.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}))(f.t)
	for i := range configMaps.Items {
		configMap := &configMaps.Items[i]
		must(to.ConfigMaps(f.name).Create(f.t.Context(),
			&corev1.ConfigMap{ObjectMeta: bare(configMap.ObjectMeta), Data: configMap.Data, BinaryData: configMap.BinaryData}, metav1.CreateOptions{}))(f.t)
	}
}

// hubID is the ID of the hub that the fleet's objects are on.
func (f *fleet) hubID() string {
	f.t.Helper()

	return string(must(f.stack().Client().CoreV1().Namespaces().Get(f.t.Context(), metav1.NamespaceSystem, metav1.GetOptions{}))(f.t).UID)
}
