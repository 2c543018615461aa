package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// awayAPI is an API with one object that can be made unavailable.
type awayAPI struct {
	away    atomic.Pointer[error]
	calls   atomic.Int32
	watcher atomic.Pointer[watch.FakeWatcher]
}

func (a *awayAPI) goAway(err error) {
	a.away.Store(&err)

	if watcher := a.watcher.Swap(nil); watcher != nil {
		watcher.Stop()
	}
}

func (a *awayAPI) answer() error {
	a.calls.Add(1)

	if err := a.away.Load(); err != nil {
		return *err
	}

	return nil
}

func (a *awayAPI) listerWatcher() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.OmniClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, a.answer()
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := a.answer(); err != nil {
				return nil, err
			}

			watcher := watch.NewFakeWithChanSize(10, false)
			a.watcher.Store(watcher)

			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				watcher.Action(watch.Bookmark, &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				}})
			}

			return watcher, nil
		},
	}
}

// TestInformerAfterOutage: the informer soon sees what changed during an outage, however long it was and however the
// calls failed.
func TestInformerAfterOutage(t *testing.T) {
	for name, failure := range map[string]error{
		"nobody answers":      errors.New("dial tcp 10.96.0.1:443: connect: no route to host"),
		"service unavailable": apierrors.NewServiceUnavailable("error trying to reach service"),
		"a timeout":           apierrors.NewTimeoutError("the server did not answer", 0),
		"an internal error":   apierrors.NewInternalError(errors.New("the storage is away")),
		"too many requests":   apierrors.NewTooManyRequests("later", 0),
	} {
		for _, outage := range []time.Duration{50 * time.Second, 10 * time.Minute} {
			t.Run(name+" for "+outage.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { informerAfterOutage(t, failure, outage) })
			})
		}
	}
}

func informerAfterOutage(t *testing.T, failure error, outage time.Duration) {
	t.Helper()

	api := &awayAPI{}
	ctx, cancel := context.WithCancel(t.Context())

	informer := newInformer(api.listerWatcher(), &v1alpha1.OmniCluster{}, 0, cache.Indexers{})

	var seen atomic.Int32
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }}); err != nil {
		t.Fatal(err)
	}

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		informer.RunWithContext(ctx)
	}()

	defer func() {
		cancel()
		<-ended
	}()

	time.Sleep(time.Minute)

	if !informer.HasSynced() {
		t.Fatal("not synced")
	}

	before := api.calls.Load()

	api.goAway(failure)
	time.Sleep(outage)

	// Nor does it flood the API: attempts are 5 seconds apart, less by jitter, and some more at first.
	if calls, most := time.Duration(api.calls.Load()-before), outage/(2*time.Second)+10; calls > most {
		t.Errorf("%d calls in %s", calls, outage)
	}

	api.away.Store(nil)
	time.Sleep(longestAwayPause + time.Second)

	watcher := api.watcher.Load()
	if watcher == nil {
		t.Fatalf("nobody watches %s after the API is back", longestAwayPause+time.Second)
	}

	watcher.Add(&v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "2"}})
	time.Sleep(time.Second)

	if seen.Load() != 1 {
		t.Error("the change is not seen")
	}
}

// TestIsAway: errors that the informer handles itself are passed on to it.
func TestIsAway(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "omniclusters"}
	tooLarge := apierrors.NewTimeoutError("too large", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}

	for name, err := range map[string]error{
		"too old a version":   apierrors.NewResourceExpired("too old"),
		"gone":                apierrors.NewGone("compacted"), //nolint:staticcheck // older servers send it
		"too large a version": tooLarge,
		"forbidden":           apierrors.NewForbidden(resource, "", errors.New("no")),
		"unauthorized":        apierrors.NewUnauthorized("no"),
		"no such kind":        apierrors.NewNotFound(resource, ""),
		"not understood":      apierrors.NewBadRequest("sendInitialEvents"),
	} {
		if isAway(err) {
			t.Errorf("%s: taken for an API that is away", name)
		}
	}
}
