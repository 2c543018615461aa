package loop

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/backoff"
)

// The pauses after errors are those of package backoff, with its jitter.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Minute
	// firstOvertaken and longestOvertaken are the pauses after runs in which somebody
	// else was quicker. They have no jitter, because they are of one object.
	firstOvertaken   = 100 * time.Millisecond
	longestOvertaken = 10 * time.Second
	// eventShare is the part of a pause that no event can shorten: one that fails
	// again and again is not tried at the rate of whatever wakes it.
	eventShare = 10
)

// RateLimiter spaces the repetitions of one object after errors. It is much
// more patient at first and much less in the end than the default of
// controller-runtime (5 ms to 17 minutes): what fails here is usually Omni or
// the network, and a cluster should not wait a quarter of an hour after an
// outage that is over.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] { return rateLimiter{NewFailures()} }

// Failures remembers the failures of every object of a kind. Given to a
// controller as its rate limiter and to the loop as a setting, it also keeps
// events from ending a pause at once: they shorten it to a tenth, 6 seconds at
// most. A change of the object itself, or a request by annotation, is followed
// at once. It is safe for concurrent use.
type Failures struct {
	now func() time.Time

	mu       sync.Mutex
	failures map[reconcile.Request]failure
}

// failure is what is known of an object that failed the last time.
type failure struct {
	count     int
	conflicts int    // that were tried again without a word
	overtaken int    // runs in a row in which somebody else was quicker
	what      string // of the object; another one deserves a try
	held      time.Time
}

// NewFailures makes Failures that know of none.
func NewFailures() *Failures {
	return &Failures{now: time.Now, failures: map[reconcile.Request]failure{}}
}

// When implements workqueue.TypedRateLimiter: it counts a failure and returns
// the pause after it.
func (f *Failures) When(request reconcile.Request) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.count++

	pause := backoff.After(failed.count, firstPause, longestPause)
	failed.held = f.now().Add(pause / eventShare)
	f.failures[request] = failed

	return backoff.Jitter(pause)
}

// Forget implements workqueue.TypedRateLimiter. It does nothing: a controller
// calls it after every run that returned no error, also one that was held back.
// The loop says when an object has succeeded.
func (f *Failures) Forget(reconcile.Request) {}

// NumRequeues implements workqueue.TypedRateLimiter.
func (f *Failures) NumRequeues(request reconcile.Request) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.failures[request].count
}

// hold returns how long a run has to wait yet; 0 if it may go on. What
// identifies the object's content: another one may always go on.
func (f *Failures) hold(request reconcile.Request, what string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed, found := f.failures[request]
	if !found {
		return 0
	}

	if failed.what == what {
		return max(failed.held.Sub(f.now()), 0)
	}

	failed.what = what
	f.failures[request] = failed

	return 0
}

// failed notes what an object was when it failed.
func (f *Failures) failed(request reconcile.Request, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.what = what
	f.failures[request] = failed
}

// conflicts tells how many conflicts an object had since it last succeeded.
func (f *Failures) conflicts(request reconcile.Request) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.failures[request].conflicts
}

// conflicted counts a conflict.
func (f *Failures) conflicted(request reconcile.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.conflicts++
	f.failures[request] = failed
}

// succeeded ends a row of failures.
func (f *Failures) succeeded(request reconcile.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.failures, request)
}

// overtaken counts a run in which somebody else was quicker, and returns the pause
// after it.
func (f *Failures) overtaken(request reconcile.Request, what string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.overtaken++

	pause := backoff.After(failed.overtaken, firstOvertaken, longestOvertaken)
	failed.what, failed.held = what, f.now().Add(pause/eventShare)
	f.failures[request] = failed

	return pause
}

// rateLimiter is Failures for a controller whose loop does not know them.
type rateLimiter struct{ *Failures }

// Forget implements workqueue.TypedRateLimiter.
func (l rateLimiter) Forget(request reconcile.Request) { l.succeeded(request) }
