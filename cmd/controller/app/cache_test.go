package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// manySecrets is an API that streams the metadata of Secrets with a MiB of annotations each.
func manySecrets(t *testing.T, count int) *rest.Config {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "true" {
			http.Error(w, "only streamed", http.StatusBadRequest)

			return
		}

		w.Header().Set("Content-Type", "application/json")

		encoder := json.NewEncoder(w)
		send := func(kind watch.EventType, metadata metav1.ObjectMeta) {
			object := index.SecretMetadata()
			object.TypeMeta, object.ObjectMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, metadata
			_ = encoder.Encode(map[string]any{"type": kind, "object": object})
		}

		for i := range count {
			send(watch.Added, metav1.ObjectMeta{
				Name: fmt.Sprintf("secret-%d", i), Namespace: "a", ResourceVersion: "5",
				Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("canary", 1<<20/6)},
			})
		}

		send(watch.Bookmark, metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}})
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)

	return &rest.Config{Host: server.URL}
}

// TestMemoryOfManySecrets: with the options of the controller, what others write into the metadata of Secrets takes no
// memory once they are known.
func TestMemoryOfManySecrets(t *testing.T) {
	count := foreigntest.Load(32)

	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "SecretList", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}

	options := parse(t, "--namespace=a").cacheOptions()
	options.Scheme, options.Mapper = scheme, mapper

	cached, err := cache.New(manySecrets(t, count), options)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := cached.GetInformer(t.Context(), index.SecretMetadata(), cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}

	before := foreigntest.LiveBytes()
	stopped := make(chan struct{})

	go func() {
		defer close(stopped)

		_ = cached.Start(t.Context())
	}()

	t.Cleanup(func() { <-stopped })

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	if !cached.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not complete")
	}

	if err := cached.List(t.Context(), list, client.InNamespace("a")); err != nil || len(list.Items) != count {
		t.Fatalf("%d Secrets, %v", len(list.Items), err)
	}

	for i := range list.Items {
		if one := &list.Items[i]; one.Annotations != nil || one.ResourceVersion != "5" {
			t.Fatalf("%+v", one.ObjectMeta)
		}
	}

	if grown := foreigntest.LiveBytes() - before; grown > 8<<20 {
		t.Errorf("%d Secrets take %d bytes", count, grown)
	}

	runtime.KeepAlive(cached)
}
