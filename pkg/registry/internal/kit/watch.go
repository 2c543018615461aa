package kit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"
)

// versionTimeout is how long one small read of the storage's current resource version may take.
const versionTimeout = 2 * time.Second

// Watch sends the changes since a resource version. Of a version that the storage has not reached yet it says that it
// is expired, so that clients list again: such a version was handed out before the storage was restored from an older
// snapshot. Without this check the watch would be silent until the storage has passed the version, and its client
// would keep objects that no longer exist.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	if options != nil && options.ResourceVersion != "" && options.ResourceVersion != "0" {
		current, err := r.currentVersion(ctx)
		if err != nil {
			return nil, err
		}

		if refusal := refuseFuture(options.ResourceVersion, current); refusal != nil {
			return endedWith(refusal), nil
		}
	}

	return r.Store.Watch(ctx, options)
}

// currentVersion reads the storage's current resource version. If that takes too long or fails, the client is told to
// try again: it keeps its objects and repeats the same watch. Any other error would make it list everything again.
func (r *REST) currentVersion(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()

	current, err := r.Storage.Storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, apierrors.NewTooManyRequests("the storage did not tell its current resource version: "+err.Error(), 1)
	}

	return current, nil
}

// refuseFuture returns an error of reason Expired for a version above the current one. It leaves a malformed version
// to the store.
func refuseFuture(requested string, current uint64) *apierrors.StatusError {
	version, err := strconv.ParseUint(requested, 10, 64)
	if err != nil || version <= current {
		return nil
	}

	return apierrors.NewResourceExpired(fmt.Sprintf(
		"resource version %d is not reached yet, the storage is at %d: it was restored from an older snapshot; list again", version, current))
}

// endedWith returns a watch that sends one error and ends, as the watch cache does for a version that is too old. An
// error of the request would not do: a RetryWatcher takes it for a passing failure, and asks for the version for ever.
func endedWith(refusal *apierrors.StatusError) watch.Interface {
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Error, Object: &refusal.ErrStatus}
	close(events)

	return watch.NewProxyWatcher(events)
}
