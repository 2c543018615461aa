package loop

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The pauses after errors: doubled from the first to the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Minute
)

// RateLimiter spaces the repetitions of one object after errors. It is much
// more patient at first and much less in the end than the default of
// controller-runtime (5 ms to 17 minutes): what fails here is usually Omni or
// the network, and a cluster should not wait a quarter of an hour after an
// outage that is over.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, longestPause)
}
