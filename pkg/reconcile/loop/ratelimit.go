package loop

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The pauses after errors: doubled from the first to the longest, and up to half
// of each taken off at random, so that what failed together does not come back
// together.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Minute
	// firstOvertaken and longestOvertaken are the pauses after runs in which somebody
	// else was quicker: doubled, too, and not spread, because they are of one object.
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
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] { return limiter{NewBackoff()} }

// Backoff remembers the failures of every object of a kind. Given to a
// controller as its rate limiter and to the loop as a setting, it also keeps
// events from ending a pause at once: they shorten it to a tenth, 6 seconds at
// most. A change of the object itself, or a request by annotation, is followed
// at once. It is safe for concurrent use.
type Backoff struct {
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

// NewBackoff makes a Backoff without failures.
func NewBackoff() *Backoff {
	return &Backoff{now: time.Now, failures: map[reconcile.Request]failure{}}
}

// When implements workqueue.TypedRateLimiter: it counts a failure and returns
// the pause after it.
func (b *Backoff) When(request reconcile.Request) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	failed := b.failures[request]
	failed.count++

	pause := pauseAfter(failed.count)
	failed.held = b.now().Add(pause / eventShare)
	b.failures[request] = failed

	return pause - rand.N(pause/2+1)
}

// Forget implements workqueue.TypedRateLimiter. It does nothing: a controller
// calls it after every run that returned no error, also one that was held back.
// The loop says when an object has succeeded.
func (b *Backoff) Forget(reconcile.Request) {}

// NumRequeues implements workqueue.TypedRateLimiter.
func (b *Backoff) NumRequeues(request reconcile.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.failures[request].count
}

// hold returns how long a run has to wait yet; 0 if it may go on. What
// identifies the object's content: another one may always go on.
func (b *Backoff) hold(request reconcile.Request, what string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	failed, found := b.failures[request]
	if !found {
		return 0
	}

	if failed.what == what {
		return max(failed.held.Sub(b.now()), 0)
	}

	failed.what = what
	b.failures[request] = failed

	return 0
}

// failed notes what an object was when it failed.
func (b *Backoff) failed(request reconcile.Request, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	failed := b.failures[request]
	failed.what = what
	b.failures[request] = failed
}

// conflicts tells how many conflicts an object had since it last succeeded.
func (b *Backoff) conflicts(request reconcile.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.failures[request].conflicts
}

// conflicted counts a conflict.
func (b *Backoff) conflicted(request reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()

	failed := b.failures[request]
	failed.conflicts++
	b.failures[request] = failed
}

// succeeded ends a row of failures.
func (b *Backoff) succeeded(request reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()

	delete(b.failures, request)
}

// overtaken counts a run in which somebody else was quicker, and returns the pause
// after it.
func (b *Backoff) overtaken(request reconcile.Request, what string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	failed := b.failures[request]
	failed.overtaken++

	pause := doubled(firstOvertaken, longestOvertaken, failed.overtaken)
	failed.what, failed.held = what, b.now().Add(pause/eventShare)
	b.failures[request] = failed

	return pause
}

// pauseAfter is the longest pause after a number of failures in a row.
func pauseAfter(failures int) time.Duration { return doubled(firstPause, longestPause, failures) }

// doubled is the pause after a number of times in a row.
func doubled(first, longest time.Duration, times int) time.Duration {
	pause := first
	for range times - 1 {
		if pause *= 2; pause >= longest {
			return longest
		}
	}

	return pause
}

// limiter is a Backoff for a controller whose loop does not know it.
type limiter struct{ *Backoff }

// Forget implements workqueue.TypedRateLimiter.
func (l limiter) Forget(request reconcile.Request) { l.succeeded(request) }
