package apiserver_test

import (
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/component-base/metrics/legacyregistry"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestEncryptionKeysAreReadAgain changes the file under a running server. A file that cannot be used leaves the keys
// as they were and is counted; a file that can be used replaces them.
func TestEncryptionKeysAreReadAgain(t *testing.T) {
	lookEvery(t, 100*time.Millisecond)

	file := filepath.Join(t.TempDir(), "encryption.yaml")
	writeFile(t, file, encryptWith(firstKey))

	r := runServer(t, func(o *genericoptions.EtcdOptions) {
		o.EncryptionProviderConfigFilepath, o.EncryptionProviderConfigAutomaticReload = file, true
	})
	want := map[string]string{}

	for _, step := range []struct{ name, content, result, key string }{
		{"at-the-start", "", "", "first"},
		{"no-configuration", "nonsense", "failure", "first"},
		{"no-key-in-it", encryptWith("{name: second, secret: bm90IDMyIGJ5dGVz}"), "failure", "first"},
		{"both-keys", encryptWith(secondKey + ", " + firstKey), "success", "second"},
	} {
		if step.content != "" {
			before := reloads(t, step.result)

			writeFile(t, file, step.content)
			await.Until(t, step.name, func() bool { return reloads(t, step.result) > before })
		}

		clusters := r.client.OmniV1alpha1().OmniClusters("default")
		if _, err := clusters.Create(t.Context(), newCluster(step.name, ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		want[step.name] = step.key

		for name, key := range want {
			if got := encryptedWith(t, r.etcd, name); got != key {
				t.Errorf("%s: %s is encrypted with %q, want %q", step.name, name, got, key)
			}

			if _, err := clusters.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
		}
	}
}

// lookEvery makes the library look at the file more often than docs/how-to/backup.md says.
func lookEvery(t *testing.T, pause time.Duration) {
	t.Helper()

	usual := controller.EncryptionConfigFileChangePollDuration
	if usual != time.Minute {
		t.Errorf("the file is looked at every %s; docs/how-to/backup.md says a minute", usual)
	}

	controller.EncryptionConfigFileChangePollDuration = pause

	t.Cleanup(func() { controller.EncryptionConfigFileChangePollDuration = usual })
}

// reloads is how often the file was read again, with success or failure.
func reloads(t *testing.T, status string) float64 {
	t.Helper()

	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}

	total := 0.0

	for _, family := range families {
		if family.GetName() != "apiserver_encryption_config_controller_automatic_reloads_total" {
			continue
		}

		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "status" && label.GetValue() == status {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}

	return total
}
