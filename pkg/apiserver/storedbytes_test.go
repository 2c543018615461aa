package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// One Go type is the stored, the internal and the served version. What says which version an object has is in what is
// stored, in answers and in events, and not in the items of a list; the list's own says it for them.
func TestVersionInBytes(t *testing.T) {
	s := startServer(t)
	made := s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", clusterJSON("a"))

	if made["kind"] != "OmniCluster" || made["apiVersion"] != "omni.texashpc.com/v1alpha1" {
		t.Errorf("created: %v %v", made["apiVersion"], made["kind"])
	}

	want := []byte(`{"kind":"OmniCluster","apiVersion":"omni.texashpc.com/v1alpha1","metadata":{"name":"a"`)

	if stored := s.stored(t); !bytes.HasPrefix(stored, want) {
		t.Errorf("stored: %.200s", stored)
	}

	for _, path := range []string{clusters, clusters + "?resourceVersion=0"} {
		_, list := s.get(t, path, "application/json")
		if bytes.Contains(list, []byte(`"kind":"OmniCluster"`)) || !bytes.Contains(list, []byte(`"kind":"OmniClusterList"`)) {
			t.Errorf("%s: %.400s", path, list)
		}
	}

	for _, path := range []string{"/a", "/a?resourceVersion=0"} {
		if _, got := s.get(t, clusters+path, "application/json"); !bytes.HasPrefix(got, want) {
			t.Errorf("%s: %.200s", path, got)
		}
	}

	if event := s.firstEvent(t, clusters+"?watch=true&resourceVersion=0"); !bytes.Contains(event, want) {
		t.Errorf("event: %.200s", event)
	}
}

// stored is what etcd has of the only object.
func (s *server) stored(t *testing.T) []byte {
	t.Helper()

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.etcd}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	found, err := client.Get(t.Context(), "/registry/omni.texashpc.com/", clientv3.WithPrefix())
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}

	return found.Kvs[0].Value
}

// firstEvent is the first line of a watch.
func (s *server) firstEvent(t *testing.T, path string) []byte {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	line, err := bufio.NewReader(response.Body).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}

	return line
}
