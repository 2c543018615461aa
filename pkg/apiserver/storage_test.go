package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// withoutStorage is far less than any request takes that waits for a missing storage.
const withoutStorage = time.Second

// startsToLoseStorage are the ways to start a server, each with how it loses its etcd.
func startsToLoseStorage() map[string]func(*testing.T) (*server, func()) {
	behindRelay := func(end func(*relay)) func(*testing.T) (*server, func()) {
		return func(t *testing.T) (*server, func()) {
			r := newRelay(t)

			return startServer(t, onEtcd(etcdtest.Start(t, t.TempDir()).Endpoint()), withStorage(r.between)), func() { end(r) }
		}
	}

	return map[string]func(*testing.T) (*server, func()){
		"gone":                  behindRelay((*relay).gone),
		"hangs":                 behindRelay((*relay).hang),
		"stops in this process": startToStopEtcd,
	}
}

// startToStopEtcd starts a server that calls its etcd directly.
func startToStopEtcd(t *testing.T) (*server, func()) {
	t.Helper()

	etcd := etcdtest.Start(t, t.TempDir())
	s := startServer(t, onEtcd(etcd.Endpoint()), withConfig(func(config *apiserver.Config) {
		apiserver.StoreIn(&config.Generic.Config, etcd.Storage)
	}))

	return s, func() {
		if err := etcd.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestDiscoveryWithoutStorage: clients of the whole hub ask for discovery and OpenAPI, and must not wait
// for our etcd.
func TestDiscoveryWithoutStorage(t *testing.T) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

	paths := map[string]string{
		"/apis": aggregated, "/apis/omni.texashpc.com": "", "/apis/omni.texashpc.com/v1alpha1": "", "/version": "",
		"/openapi/v2": "", "/openapi/v3": "", "/openapi/v3/apis/omni.texashpc.com/v1alpha1": "",
	}

	for name, start := range startsToLoseStorage() {
		t.Run(name, func(t *testing.T) {
			s, lose := start(t)

			for path, accept := range paths { // documents are made when they are asked for the first time
				s.get(t, path, accept)
			}

			lose()

			for path, accept := range paths {
				status, body, took := s.fastest(t, path, accept, withoutStorage)
				if status != http.StatusOK || took > withoutStorage {
					t.Errorf("%s: status %d after %s: %s", path, status, took, body[:min(len(body), 200)])
				}
			}

			ctx, cancel := context.WithTimeout(t.Context(), withoutStorage)
			defer cancel()

			if _, err := s.client.OmniV1alpha1().OmniMachines("default").Create(ctx, machine("m", "c", "30303031-3233-3435-3637-383930313230"), metav1.CreateOptions{}); err == nil {
				t.Error("a write succeeds: the storage is still there")
			}
		})
	}
}

// TestWatchWithoutStorage: a client that resumes a watch keeps its objects and asks again from the same version. Any
// other answer than "too many requests" would make all clients list everything again.
func TestWatchWithoutStorage(t *testing.T) {
	for name, start := range startsToLoseStorage() {
		t.Run(name, func(t *testing.T) {
			s, lose := start(t)
			list := s.mustCall(t, http.StatusOK, http.MethodGet, clusters, "", "")

			lose()

			begin := time.Now()
			status, answer := s.get(t, clusters+"?watch=1&timeoutSeconds=60&resourceVersion="+list["metadata"].(map[string]any)["resourceVersion"].(string), "")

			if took := time.Since(begin); status != http.StatusTooManyRequests || took > 10*withoutStorage {
				t.Errorf("status %d after %s: %s", status, took, answer)
			}
		})
	}
}

// TestExpired: a client that continues a list or a watch after a compaction is refused with 410. Every client knows
// how to go on from that: with the token in the answer, or from the beginning.
func TestExpired(t *testing.T) {
	dir := t.TempDir()
	page := &v1alpha1.OmniMachineList{}

	t.Run("before", func(t *testing.T) { page = firstPageThenCompacted(t, dir) })

	// After a restart no cache has the old states.
	s := startServer(t, onDirectory(dir))
	machines := s.client.OmniV1alpha1().OmniMachines("default")

	_, err := machines.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: page.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("the rest: %v", err)
	}

	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Code != http.StatusGone {
		t.Fatalf("refused with %v", err)
	}

	rest, err := machines.List(t.Context(), metav1.ListOptions{Continue: refusal.Status().ListMeta.Continue})
	if err != nil || len(rest.Items) != 1 || rest.Items[0].Name != "m1" {
		t.Errorf("the rest as it is now: %+v %v", rest, err)
	}

	exact := metav1.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := machines.List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list of a state that is gone: %v", err)
	}

	if err := watchFrom(t, s, page.ResourceVersion, await.Limit); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a state that is gone: %v", err)
	}

	if all, err := machines.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 2 {
		t.Errorf("from the beginning: %+v %v", all, err)
	} else if err := watchFrom(t, s, all.ResourceVersion, 200*time.Millisecond); err != nil {
		t.Errorf("a watch from there: %v", err)
	}
}

// firstPageThenCompacted returns the first page of a list, one machine of three. It compacts the state of that list
// before it returns.
func firstPageThenCompacted(t *testing.T, dir string) *v1alpha1.OmniMachineList {
	t.Helper()

	var endpoint string

	s := startServer(t, onDirectory(dir), withStorage(func(options *genericoptions.EtcdOptions) { endpoint = options.StorageConfig.Transport.ServerList[0] }))
	machines := s.client.OmniV1alpha1().OmniMachines("default")

	for i := range 3 {
		one := machine(fmt.Sprintf("m%d", i), "production", fmt.Sprintf("30303031-3233-3435-3637-38393031323%d", i))
		if _, err := machines.Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	page, err := machines.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || page.Continue == "" {
		t.Fatalf("first page: %v, %+v", err, page)
	}

	if err := machines.Delete(t.Context(), "m2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	compact(t, endpoint)

	return page
}

// compact removes all revisions of the storage but the current one.
func compact(t *testing.T, endpoint string) {
	t.Helper()

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: await.Limit})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	ctx := await.Context(t)

	now, err := client.Get(ctx, "any")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

// watchFrom returns the error of a watch, whether it comes as the answer or as an event; nil if none comes within a
// moment.
func watchFrom(t *testing.T, s *server, version string, moment time.Duration) error {
	t.Helper()

	stream, err := s.client.OmniV1alpha1().OmniMachines("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return err
	}
	defer stream.Stop()

	select {
	case event := <-stream.ResultChan():
		return apierrors.FromObject(event.Object)
	case <-time.After(moment):
		return nil
	}
}

func machine(name, cluster, id string) *v1alpha1.OmniMachine {
	return &v1alpha1.OmniMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OmniMachineSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: cluster},
			MachineID:  id,
		},
	}
}
