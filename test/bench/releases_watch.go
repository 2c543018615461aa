package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// readiness watches the objects of one kind in one namespace and notes since when each is Ready.
// A watch costs the servers the same for both sides, and less than asking again and again.
type readiness struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	since map[string]time.Time // zero: it exists and is not Ready
}

func watchReadiness(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) (*readiness, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &readiness{cancel: cancel, since: map[string]time.Time{}}

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource).Informer()

	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.see,
		UpdateFunc: func(_, object any) { r.see(object) },
		DeleteFunc: r.forget,
	}); err != nil {
		cancel()

		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}

	factory.Start(ctx.Done())

	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		cancel()

		return nil, errors.New("watch " + resource.Resource + ": the first list did not arrive")
	}

	return r, nil
}

func (r *readiness) see(object any) {
	seen, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	ready := isReady(seen)

	switch since := r.since[seen.GetName()]; {
	case !ready:
		r.since[seen.GetName()] = time.Time{}
	case since.IsZero():
		r.since[seen.GetName()] = time.Now()
	}
}

func (r *readiness) forget(object any) {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.since, key.Name)
}

// state returns how many objects exist and are Ready, and when the last became so.
func (r *readiness) state() (all, ready int, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, since := range r.since {
		if !since.IsZero() {
			ready++
		}

		if since.After(last) {
			last = since
		}
	}

	return len(r.since), ready, last
}

// waitFor waits until so many objects exist and all of them are Ready, and returns since when.
func (r *readiness) waitFor(ctx context.Context, count int, what string) (time.Time, error) {
	var since time.Time

	err := env.Eventually(ctx, stepTimeout, fmt.Sprintf("%d releases of %s", count, what), func(context.Context) error {
		all, ready, last := r.state()
		if all != count || ready != count {
			return fmt.Errorf("%d exist, %d are ready", all, ready)
		}

		since = last

		return nil
	})

	return since, err
}

// isReady reports whether an object's condition Ready is true for the spec as it is.
func isReady(object *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")

	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == "Ready" {
			return condition["status"] == "True" && observed == object.GetGeneration()
		}
	}

	return false
}
