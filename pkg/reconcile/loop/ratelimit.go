package loop

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// The pauses after errors are those of limiter.Backoff, with its jitter.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Minute
	// firstOvertaken and longestOvertaken are the pauses after an Overtaken. They have no jitter, because each concerns
	// one object.
	firstOvertaken   = 100 * time.Millisecond
	longestOvertaken = 10 * time.Second
	// eventDivisor limits how much events shorten a pause: to this part of it. An object that fails repeatedly is not
	// tried at the rate of its triggers.
	eventDivisor = 10
)

// RateLimiter returns the rate limiter for retries after errors. Its first pauses are much longer and its last ones
// much shorter than those of controller-runtime's default (5 ms to 17 minutes): failures here are usually Omni's or the
// network's, and a cluster should not wait a quarter of an hour after the end of an outage.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] { return rateLimiter{newFailures()} }

// Failures records the failures of every object of a kind. As the rate limiter of the kind's controller, it also keeps
// events from ending a pause at once: they shorten it to a tenth, 6 seconds at most. Otherwise it holds nothing back but
// what was overtaken. A change of the object itself, or a request by annotation, is handled at once. It is safe for
// concurrent use.
type Failures struct {
	now func() time.Time

	mu       sync.Mutex
	failures map[reconcile.Request]failure
}

// failure is the record of an object that failed the last time.
type failure struct {
	count     int
	conflicts int    // that were tried again without a word
	overtaken int    // runs in a row in which somebody else was quicker
	what      string // of the object; another one deserves a try
	held      time.Time
}

// newFailures returns Failures without a record.
func newFailures() *Failures {
	return &Failures{now: time.Now, failures: map[reconcile.Request]failure{}}
}

// When implements workqueue.TypedRateLimiter: it counts a failure and returns
// the pause after it.
func (f *Failures) When(request reconcile.Request) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.count++

	pause := limiter.BackoffAfter(failed.count, firstPause, longestPause)
	failed.held = f.now().Add(pause / eventDivisor)
	f.failures[request] = failed

	return limiter.Jitter(pause)
}

// Forget implements workqueue.TypedRateLimiter. It does nothing: a controller calls it after every run without an
// error, even one that was held back. The loop calls succeeded instead.
func (f *Failures) Forget(reconcile.Request) {}

// NumRequeues implements workqueue.TypedRateLimiter.
func (f *Failures) NumRequeues(request reconcile.Request) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.failures[request].count
}

// hold returns how long a run still has to wait; 0 if it may go on. what identifies the object's content: a changed
// object may always go on.
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

// failed records the content of an object that failed.
func (f *Failures) failed(request reconcile.Request, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.what = what
	f.failures[request] = failed
}

// conflicts returns the number of conflicts since an object last succeeded.
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

// overtaken counts an Overtaken, and returns the pause after it.
func (f *Failures) overtaken(request reconcile.Request, what string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	failed := f.failures[request]
	failed.overtaken++

	pause := limiter.BackoffAfter(failed.overtaken, firstOvertaken, longestOvertaken)
	failed.what, failed.held = what, f.now().Add(pause/eventDivisor)
	f.failures[request] = failed

	return pause
}

// rateLimiter is Failures for a controller whose loop does not use them.
type rateLimiter struct{ *Failures }

// Forget implements workqueue.TypedRateLimiter.
func (l rateLimiter) Forget(request reconcile.Request) { l.succeeded(request) }
