package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/backoff"
)

const (
	// firstAwayPause and longestAwayPause are the pauses between two tries to list or watch a kind while the API is away.
	// They double, and up to half of each is taken off at random.
	firstAwayPause   = 500 * time.Millisecond
	longestAwayPause = 5 * time.Second
	// awayTold is how often the log repeats that a kind cannot be listed or watched.
	awayTold = time.Minute
)

// newInformer makes an informer of the cache that knows of changes again at most longestAwayPause after the API is back.
//
// The informer's own pause doubles up to 30 seconds, becomes up to 60 by chance, and cannot be set: after an outage of a
// minute the controller would do nothing for another one. So the tries while the API is away take place below it.
func newInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	below := cache.ToListerWatcherWithContext(lw)

	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return whileAway(ctx, "list", object, func() (runtime.Object, error) { return below.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return whileAway(ctx, "watch", object, func() (watch.Interface, error) { return below.WatchWithContext(ctx, options) })
		},
	}, object, resync, indexers)
}

// whileAway repeats a call as long as it fails because the API is away.
func whileAway[T any](ctx context.Context, verb string, object runtime.Object, call func() (T, error)) (T, error) {
	var told time.Time

	for pauses := backoff.New(firstAwayPause, longestAwayPause); ; {
		result, err := call()
		if err == nil || ctx.Err() != nil || !isAway(err) {
			return result, err
		}

		if time.Since(told) >= awayTold {
			told = time.Now()

			klog.FromContext(ctx).Error(err, "The API is away: changes are not seen until it is back; trying again every few seconds",
				"verb", verb, "type", fmt.Sprintf("%T", object))
		}

		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(pauses.Next()):
		}
	}
}

// isAway reports whether a call failed because nobody answered it, or said to come back later. Refusals are the informer's
// to handle: among them that a version is too old, or newer than what the server has (a 504 with a cause).
func isAway(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}

	status := answer.Status()

	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return false
	}

	return status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests
}
