package apiserver_test

import (
	"net/http"
	"path/filepath"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// kubectl apply removes the resourceVersion where the annotation last-applied-configuration has one, as after `kubectl replace` of a
// live object: that names no version, and is no error.
func TestPatchWithoutAVersion(t *testing.T) {
	s := startServer(t)
	s.make(t, "a")

	for _, kind := range []string{"application/merge-patch+json", "application/strategic-merge-patch+json"} {
		s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/a", kind,
			`{"metadata":{"resourceVersion":null,"uid":null,"creationTimestamp":null,"generation":null,"labels":{"by":"`+kind[12:17]+`"}},"status":null}`)
	}

	s.mustCall(t, http.StatusConflict, http.MethodPatch, clusters+"/a", "application/merge-patch+json", `{"metadata":{"resourceVersion":"1","labels":{"c":"d"}}}`)
}

// An empty patch writes an object anew with the first key, as docs/how-to/backup.md has it.
func TestEmptyPatchEncrypts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "encryption.yaml")

	for _, keys := range []string{firstKey, secondKey + ", " + firstKey} {
		writeFile(t, file, encryptWith(keys))

		t.Run(keys[7:13], func(t *testing.T) {
			s := startServer(t, onDirectory(dir), withStorage(func(o *genericoptions.EtcdOptions) { o.EncryptionProviderConfigFilepath = file }))

			if keys == firstKey {
				s.make(t, "old")

				return
			}

			before := encryptedWith(t, s.etcd, "old")
			s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/old", "application/merge-patch+json", `{}`)

			if after := encryptedWith(t, s.etcd, "old"); after == before {
				t.Errorf("it is encrypted with %q still", after)
			}
		})
	}
}
