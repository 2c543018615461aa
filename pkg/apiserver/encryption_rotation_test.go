package apiserver_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// Secrets of 32 bytes that protect nothing.
const (
	firstKey  = "{name: first, secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}"
	secondKey = "{name: second, secret: YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY=}"
)

// TestEncryptionKeyIsChanged follows the steps of docs/how-to/backup.md, with a restart at each step: every object
// stays readable, and after the last step no object needs the first key.
func TestEncryptionKeyIsChanged(t *testing.T) {
	dir := t.TempDir()

	for _, step := range []struct {
		name, keys string
		// do is what is done at this step.
		do func(t *testing.T, s *server)
		// want is what the objects are encrypted with afterwards.
		want map[string]string
	}{
		{"the first key alone", firstKey, func(t *testing.T, s *server) { s.make(t, "old") }, map[string]string{"old": "first"}},
		{"the second can be read", firstKey + ", " + secondKey, func(t *testing.T, s *server) { s.make(t, "between") },
			map[string]string{"old": "first", "between": "first"}},
		{"the second writes", secondKey + ", " + firstKey, func(t *testing.T, s *server) { s.make(t, "new") },
			map[string]string{"old": "first", "between": "first", "new": "second"}},
		{"every object is written anew, as it is", secondKey + ", " + firstKey, func(t *testing.T, s *server) {
			for _, name := range []string{"old", "between", "new"} {
				s.writeAnew(t, name)
			}
		}, map[string]string{"old": "second", "between": "second", "new": "second"}},
		{"the second key alone", secondKey, func(*testing.T, *server) {}, map[string]string{"old": "second", "between": "second", "new": "second"}},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "encryption.yaml")
			writeFile(t, file, encryptWith(step.keys))

			s := startServer(t, onDirectory(dir), withStorage(func(o *genericoptions.EtcdOptions) { o.EncryptionProviderConfigFilepath = file }))
			step.do(t, s)

			for name, key := range step.want {
				if status, body := s.get(t, clusters+"/"+name, ""); status != http.StatusOK || !strings.Contains(string(body), marker) {
					t.Errorf("%s cannot be read: status %d: %s", name, status, body)
				}

				if got := encryptedWith(t, s.etcd, name); got != key {
					t.Errorf("%s is encrypted with %q, want %q", name, got, key)
				}
			}
		}) {
			return
		}
	}
}

// encryptWith returns a configuration with these keys; the first one encrypts new writes.
func encryptWith(keys string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- resources: ['*.omni.texashpc.com']\n  providers: [{secretbox: {keys: [" + keys + "]}}]\n"
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *server) make(t *testing.T, name string) {
	t.Helper()
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json",
		strings.Replace(clusterJSON(name), `"metadata":{`, `"metadata":{"annotations":{"a":"`+marker+`"},`, 1))
}

// writeAnew puts the object back as it was read, as kubectl replace does.
func (s *server) writeAnew(t *testing.T, name string) {
	t.Helper()

	_, body := s.get(t, clusters+"/"+name, "")

	var before struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &before); err != nil {
		t.Fatal(err)
	}

	s.mustCall(t, http.StatusOK, http.MethodPut, clusters+"/"+name, "application/json", string(body))
}

// encryptedWith is the name of the key that the etcd's value was encrypted with.
func encryptedWith(t *testing.T, endpoint, name string) string {
	t.Helper()

	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()

	answer, err := etcd.Get(t.Context(), "/registry/omni.texashpc.com/omniclusters/default/"+name)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%d values, %v", len(answer.Kvs), err)
	}

	value := string(answer.Kvs[0].Value)

	const prefix = "k8s:enc:secretbox:v1:"
	if !strings.HasPrefix(value, prefix) || strings.Contains(value, marker) {
		t.Fatalf("%s is not encrypted: %q", name, value)
	}

	key, _, _ := strings.Cut(value[len(prefix):], ":")

	return key
}
