package embeddedetcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestAKindGoesWithoutTheCompactor: old revisions of the others are removed all the same.
func TestAKindGoesWithoutTheCompactor(t *testing.T) {
	server := started(t)

	first := storeKind(t, server, "first")
	defer storeKind(t, server, "second")()

	first()

	client := clientOf(t, server)
	before := compactions(t, client)

	await.Until(t, "another compaction", func() bool { return compactions(t, client) != before })
}

// storeKind returns what ends the storage of the kind.
func storeKind(t *testing.T, server *Server, resource string) func() {
	t.Helper()

	config := storagebackend.NewDefaultConfig("/registry", unstructured.UnstructuredJSONScheme)
	config.CompactionInterval = 20 * time.Millisecond

	_, destroy, err := server.store(config.ForResource(schema.GroupResource{Resource: resource}), "/"+resource,
		func() runtime.Object { return &unstructured.Unstructured{} },
		func() runtime.Object { return &unstructured.UnstructuredList{} })
	if err != nil {
		t.Fatal(err)
	}

	return destroy
}

// compactions counts the turns of the compactor.
func compactions(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()

	answer, err := client.Get(t.Context(), "compact_rev_key")
	if err != nil {
		t.Fatal(err)
	}

	if answer.Count == 0 {
		return 0
	}

	return answer.Kvs[0].Version
}
