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
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	eventrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// controllerManager is the library's manager, with a recorder of events that keeps few of them in memory. Stop events
// when the manager has ended.
type controllerManager struct {
	manager.Manager
	events *eventRecorder
}

// GetEventRecorder returns the one recorder, whatever the name is: all events have one source.
func (m *controllerManager) GetEventRecorder(string) eventrecorder.EventRecorder { return m.events }

// newManager makes the manager, with a lease that is stricter than the library's.
func newManager(config *Config) (*controllerManager, error) {
	lease, lock, err := newLeaderLease(config.Hub, config.Manager.LeaderElectionNamespace)
	if err != nil {
		return nil, err
	}

	// The lease is not used without leader election.
	config.Manager.LeaderElectionResourceLockInterface = lease

	mgr, err := manager.New(config.Hub, config.Manager)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}

	lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // what the library itself takes for its lock

	client, err := eventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up events: %w", err)
	}

	recorder, err := startEvents(mgr.GetScheme(), &events.EventSinkImpl{Interface: client}, mgr.GetLogger().WithName("events"))
	if err != nil {
		return nil, err
	}

	return &controllerManager{Manager: mgr, events: recorder}, nil
}

const (
	// firstAwayPause and longestAwayPause bound the pauses between two attempts to list or watch a kind while the API
	// is unavailable. Pauses double, and a random part of up to half is subtracted.
	firstAwayPause   = 500 * time.Millisecond
	longestAwayPause = 5 * time.Second
	// awayTold is how often the log repeats that a kind cannot be listed or watched.
	awayTold = time.Minute
)

// newInformer makes an informer for the cache that sees changes at most longestAwayPause after the API is available
// again.
//
// The informer's own pause doubles up to 30 seconds, becomes up to 60 by jitter, and cannot be configured: after an
// outage of a minute the controller would do nothing for another minute. So the retries during an outage happen below
// the informer, in its list and watch functions.
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

// whileAway repeats a call as long as it fails because the API is unavailable.
func whileAway[T any](ctx context.Context, verb string, object runtime.Object, call func() (T, error)) (T, error) {
	var told time.Time

	for pauses := limiter.NewBackoff(firstAwayPause, longestAwayPause); ; {
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

// isAway reports whether a call failed because nobody answered, or because the server asked to try again later. The
// informer itself handles refusals, also of a version that is too old, or newer than the server's (a 504 with a
// cause).
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

const mebibyte = 1 << 20

// rendering bounds the processes that render Helm charts.
func (o *Options) rendering() controllers.Rendering {
	return controllers.Rendering{Workers: o.RenderWorkers, Memory: o.RenderMemoryMiB * mebibyte, Timeout: o.RenderTimeout}
}

// renderingMemory is how many bytes these processes may take together.
func (o *Options) renderingMemory() int64 {
	return int64(o.RenderWorkers) * o.RenderMemoryMiB * mebibyte
}

func (o *Options) validateRendering() []error {
	var problems []error

	if o.RenderWorkers < 1 {
		problems = append(problems, fmt.Errorf("--render-workers: %d is less than 1", o.RenderWorkers))
	}

	if least := int64(controllers.MinRenderMemory / mebibyte); o.RenderMemoryMiB < least {
		problems = append(problems, fmt.Errorf("--render-memory: %d is less than %d: no chart could be rendered", o.RenderMemoryMiB, least))
	}

	if o.RenderTimeout < time.Second {
		problems = append(problems, fmt.Errorf("--render-timeout: %s is less than 1s", o.RenderTimeout))
	}

	return problems
}
