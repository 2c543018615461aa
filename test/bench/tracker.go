package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// tracker watches the OmniClusters of a namespace through the aggregator, as kubectl get -w does,
// and notes when each was seen in a state first.
type tracker struct {
	cancel context.CancelFunc

	mu        sync.Mutex
	synced    map[string]time.Time
	ready     map[string]time.Time
	requested map[string]int32         // machines that Omni asked for, as shown
	shown     map[string]chan struct{} // closed at the next change of requested
}

func newTracker(ctx context.Context, clients *versioned.Clientset, namespace string) (*tracker, error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &tracker{
		cancel: cancel, synced: map[string]time.Time{}, ready: map[string]time.Time{},
		requested: map[string]int32{}, shown: map[string]chan struct{}{},
	}

	factory := externalversions.NewSharedInformerFactoryWithOptions(clients, 0, externalversions.WithNamespace(namespace))
	informer := factory.Omni().V1alpha1().OmniClusters().Informer()

	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    t.see,
		UpdateFunc: func(_, object any) { t.see(object) },
	}); err != nil {
		cancel()

		return nil, fmt.Errorf("watch clusters: %w", err)
	}

	factory.Start(ctx.Done())

	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		cancel()

		return nil, errors.New("watch clusters: the first list did not arrive")
	}

	return t, nil
}

func (t *tracker) stop() { t.cancel() }

func (t *tracker) see(object any) {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok {
		return
	}

	now := time.Now()

	t.mu.Lock()
	defer t.mu.Unlock()

	for condition, first := range map[string]map[string]time.Time{v1alpha1.ConditionSynced: t.synced, v1alpha1.ConditionReady: t.ready} {
		if _, known := first[cluster.Name]; !known && isTrue(cluster, condition) {
			first[cluster.Name] = now
		}
	}

	if omni := cluster.Status.Omni; omni != nil && t.requested[cluster.Name] != omni.Machines.Requested {
		t.requested[cluster.Name] = omni.Machines.Requested
		if waiting := t.shown[cluster.Name]; waiting != nil {
			close(waiting)
			delete(t.shown, cluster.Name)
		}
	}
}

// isTrue reports whether a condition is true for the spec as it is.
func isTrue(cluster *v1alpha1.OmniCluster, kind string) bool {
	found := meta.FindStatusCondition(cluster.Status.Conditions, kind)

	return found != nil && found.Status == metav1.ConditionTrue && cluster.Status.ObservedGeneration == cluster.Generation
}

// counts returns how many clusters were seen synced and ready.
func (t *tracker) counts() (synced, ready int) {
	t.mu.Lock()
	defer t.mu.Unlock()

	return len(t.synced), len(t.ready)
}

// lastOf returns the latest of the times at which the named clusters were seen synced and ready.
func (t *tracker) lastOf(names []string) (synced, ready time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, name := range names {
		if at := t.synced[name]; at.After(synced) {
			synced = at
		}

		if at := t.ready[name]; at.After(ready) {
			ready = at
		}
	}

	return synced, ready
}

// waitRequested waits until a cluster shows a number of requested machines, and returns when that
// was.
func (t *tracker) waitRequested(ctx context.Context, name string, want int32) (time.Time, error) {
	for {
		t.mu.Lock()
		got := t.requested[name]

		changed := t.shown[name]
		if changed == nil {
			changed = make(chan struct{})
			t.shown[name] = changed
		}
		t.mu.Unlock()

		if got == want {
			return time.Now(), nil
		}

		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for %d requested machines of %s, which shows %d: %w", want, name, got, ctx.Err())
		case <-changed:
		}
	}
}
