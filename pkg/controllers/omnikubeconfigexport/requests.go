package omnikubeconfigexport

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// The limit of one export: enough for a user who edits it again and again, and too little for a loop of two writers of
// the Secret.
const (
	issueBurst = 5
	issuePause = time.Minute
)

// issued is a kubeconfig that Omni made and that is not stored yet. It is kept until it is stored: what is lost gives
// access until it expires, or until an Admin of Omni deletes its key.
type issued struct {
	access   access
	claims   claims
	specHash string
}

// requests records what each export has asked of Omni. It is safe for concurrent use.
type requests struct {
	mu      sync.Mutex
	exports map[types.NamespacedName]*requestsOf
}

// requestsOf records those of one export.
type requestsOf struct {
	uid     types.UID
	limiter *rate.Limiter
	pending *issued
	held    found // by the Secret that was deleted to be made again
	heldAt  types.NamespacedName
	failure *loop.Outcome // of the last time that Omni was asked
	pause   time.Time     // the end of a pause because of the clocks
	skewed  int           // how often in a row Omni issued what is not valid by our clock
	probe   probeState
}

// of returns the record of an export, and creates it if necessary. The caller holds the lock.
func (r *requests) of(export *v1alpha1.OmniKubeconfigExport) *requestsOf {
	name := client.ObjectKeyFromObject(export)

	known := r.exports[name]
	if known == nil || known.uid != export.UID {
		known = &requestsOf{uid: export.UID, limiter: rate.NewLimiter(rate.Every(issuePause), issueBurst)}
		r.exports[name] = known
	}

	return known
}

// take allows a request to Omni, or returns how long to wait and how the last request ended. Refund returns the
// permission if certainly nothing was issued.
func (r *requests) take(export *v1alpha1.OmniKubeconfigExport, now time.Time) (refund func(), wait time.Duration, failure *loop.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export)

	// A clock that was set back makes the pause no longer than it was.
	if wait := known.pause.Sub(now); wait > 0 && wait <= longestClockPause {
		return func() {}, wait, known.failure
	}

	reservation := known.limiter.ReserveN(now, 1)
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)

		return func() {}, wait, known.failure
	}

	return func() { reservation.CancelAt(now) }, 0, nil
}

// failed records how a request ended.
func (r *requests) failed(export *v1alpha1.OmniKubeconfigExport, outcome loop.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.of(export).failure = &outcome
}

// failedByClock is failed for a kubeconfig that is not valid by our clock.
func (r *requests) failedByClock(export *v1alpha1.OmniKubeconfigExport, outcome loop.Outcome, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export)
	known.skewed++
	known.failure, known.pause = &outcome, now.Add(limiter.BackoffAfter(known.skewed, clockPause, longestClockPause))
}

// keep stores a kubeconfig until it is written.
func (r *requests) keep(export *v1alpha1.OmniKubeconfigExport, fresh *issued) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export)
	known.pending, known.failure = fresh, nil
}

// pending returns a kubeconfig that was issued for the same ingredients, is not stored, and is valid by our clock as it is now.
func (r *requests) pending(export *v1alpha1.OmniKubeconfigExport, want ingredients, at times) *issued {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export).pending
	if known == nil || known.specHash != want.hash() || !known.claims.believable(want, at) {
		return nil
	}

	return known
}

// stored removes the kubeconfig that was kept.
func (r *requests) stored(export *v1alpha1.OmniKubeconfigExport) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export)
	known.pending, known.skewed = nil, 0
}

// hold stores what the target holds, which is to be deleted and made again.
func (r *requests) hold(export *v1alpha1.OmniKubeconfigExport, held found) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.of(export)
	known.held, known.heldAt = held, export.EffectiveTarget()
}

// held returns what the target held that was deleted to be made again; nothing if it was not.
func (r *requests) held(export *v1alpha1.OmniKubeconfigExport) found {
	r.mu.Lock()
	defer r.mu.Unlock()

	if known := r.of(export); known.heldAt == export.EffectiveTarget() {
		return known.held
	}

	return found{}
}

func (r *requests) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.exports, name)
}
