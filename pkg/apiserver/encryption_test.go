package apiserver_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// marker stands in a spec, and nowhere else.
const marker = "marker-of-the-encryption-test"

// encryptionConfig is what docs/how-to/backup.md shows, with a key of 32 bytes that protects nothing.
const encryptionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ["*.omni.texashpc.com"]
  providers:
  - secretbox:
      keys:
      - name: first
        secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=
  - identity: {}
`

// TestEncryptionAtRest reads what is on the disk: database and log.
func TestEncryptionAtRest(t *testing.T) {
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(config, []byte(encryptionConfig), 0o600); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name   string
		config string
		onDisk bool
	}{
		{"without a provider", "", true},
		{"with a provider", config, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			s := startServer(t, onDirectory(dir), withStorage(func(o *genericoptions.EtcdOptions) { o.EncryptionProviderConfigFilepath = test.config }))
			clusters := s.client.OmniV1alpha1().OmniClusters("default")

			if _, err := clusters.Create(t.Context(), newCluster("one", marker), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}

			if read, err := clusters.Get(t.Context(), "one", metav1.GetOptions{}); err != nil || read.Spec.ClusterName != marker {
				t.Errorf("read back %v, %v", read, err)
			}

			if got := onDisk(t, dir, marker); got != test.onDisk {
				t.Errorf("the spec can be read on the disk: %t, want %t", got, test.onDisk)
			}

			if got := onDisk(t, dir, "/registry/omni.texashpc.com/omniclusters/default/one"); !got {
				t.Error("the object's key, which is never encrypted, is not on the disk: was it written elsewhere?")
			}
		})
	}
}

// onDisk reports whether any file below a directory contains the text.
func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()

	found := false

	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		content, err := os.ReadFile(path)
		found = found || bytes.Contains(content, []byte(text))

		return err
	}); err != nil {
		t.Fatal(err)
	}

	return found
}
