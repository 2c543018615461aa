package omnikubeconfigexport

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// The limit of one export: enough for a user who edits it again and again, and too little for a loop of two writers of
// the Secret.
const (
	issueBurst = 5
	issuePause = time.Minute
)

// issued is a kubeconfig that Omni made and that is not stored yet. It is kept until it is stored, because another one
// could not be revoked either.
type issued struct {
	access   access
	claims   claims
	specHash string
}

// issuing records the requests of each export. It is safe for concurrent use.
type issuing struct {
	mu      sync.Mutex
	exports map[types.NamespacedName]*issuingOf
}

type issuingOf struct {
	uid     types.UID
	limiter *rate.Limiter
	pending *issued
	held    found         // by a Secret that was deleted to be made again
	failure *loop.Outcome // of the last time that Omni was asked
	pause   time.Time     // the end of clockPause
}

func newIssuing() *issuing { return &issuing{exports: map[types.NamespacedName]*issuingOf{}} }

// of returns the record of an export, and creates it if necessary. The caller holds the lock.
func (i *issuing) of(name types.NamespacedName, uid types.UID) *issuingOf {
	known := i.exports[name]
	if known == nil || known.uid != uid {
		known = &issuingOf{uid: uid, limiter: rate.NewLimiter(rate.Every(issuePause), issueBurst)}
		i.exports[name] = known
	}

	return known
}

// take allows a request to Omni, or returns how long to wait and how the last request ended. Refund returns the
// permission if certainly nothing was issued.
func (i *issuing) take(name types.NamespacedName, uid types.UID, now time.Time) (refund func(), wait time.Duration, failure *loop.Outcome) {
	i.mu.Lock()
	defer i.mu.Unlock()

	known := i.of(name, uid)

	// A clock that was set back makes the pause no longer than it was.
	if wait := known.pause.Sub(now); wait > 0 && wait <= clockPause {
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
func (i *issuing) failed(name types.NamespacedName, uid types.UID, outcome loop.Outcome) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.of(name, uid).failure = &outcome
}

// failedByClock is failed for a kubeconfig that is not valid by our clock.
func (i *issuing) failedByClock(name types.NamespacedName, uid types.UID, outcome loop.Outcome, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()

	known := i.of(name, uid)
	known.failure, known.pause = &outcome, now.Add(clockPause)
}

// keep stores a kubeconfig until it is written.
func (i *issuing) keep(name types.NamespacedName, uid types.UID, fresh *issued) {
	i.mu.Lock()
	defer i.mu.Unlock()

	known := i.of(name, uid)
	known.pending, known.failure = fresh, nil
}

// pending returns a kubeconfig that was issued for the same ingredients and is not stored.
func (i *issuing) pending(name types.NamespacedName, uid types.UID, specHash string, now time.Time) *issued {
	i.mu.Lock()
	defer i.mu.Unlock()

	known := i.of(name, uid).pending
	if known == nil || known.specHash != specHash || !now.Before(known.claims.expires()) {
		return nil
	}

	return known
}

// stored removes the kubeconfig that was kept.
func (i *issuing) stored(name types.NamespacedName, uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.of(name, uid).pending = nil
}

// hold stores what a Secret holds that is to be deleted and made again.
func (i *issuing) hold(name types.NamespacedName, uid types.UID, held found) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.of(name, uid).held = held
}

// held returns what the Secret held that was deleted to be made again; not intact if none was.
func (i *issuing) held(name types.NamespacedName, uid types.UID) found {
	i.mu.Lock()
	defer i.mu.Unlock()

	return i.of(name, uid).held
}

func (i *issuing) forget(name types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()

	delete(i.exports, name)
}
