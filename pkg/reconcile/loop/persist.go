package loop

import (
	"errors"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// persistPoll is how often the cache is checked for a status that was just stored: its event arrives within
	// milliseconds.
	persistPoll = 5 * time.Millisecond
	// persistTimeout is how long the loop waits for that status. A run that begins without it does no harm: its write
	// has a conflict, or it returns Persist for the same status again.
	persistTimeout = 10 * time.Second
)

// errNothingPersisted is the error of a phase that returned Persist without a change of the status: it would wait for
// ever.
var errNothingPersisted = errors.New("a phase asked to store a status that did not change")

// persisted records the statuses that the cache does not show yet.
type persisted struct {
	now func() time.Time

	mu       sync.Mutex
	statuses map[reconcile.Request]storedStatus
}

// storedStatus is the version of an object after a Persist.
type storedStatus struct {
	uid     types.UID
	version string
	at      time.Time
}

func newPersisted() *persisted {
	return &persisted{now: time.Now, statuses: map[reconcile.Request]storedStatus{}}
}

// stored records what a run stored. The object has the version of the patch, unless it is gone.
func (p *persisted) stored(request reconcile.Request, before, object client.Object) error {
	if apiequality.Semantic.DeepEqual(before, object) {
		return errNothingPersisted
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.statuses[request] = storedStatus{uid: object.GetUID(), version: object.GetResourceVersion(), at: p.now()}

	return nil
}

// awaited reports whether an object from the cache is older than the status that was stored for it.
func (p *persisted) awaited(request reconcile.Request, cached client.Object) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	status, found := p.statuses[request]
	if !found {
		return false
	}

	// Versions that cannot be compared are ignored: the run decides by itself.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), status.version)
	if err == nil && order < 0 && cached.GetUID() == status.uid && p.now().Sub(status.at) < persistTimeout {
		return true
	}

	delete(p.statuses, request)

	return false
}

// forget removes what is kept about an object that no longer exists.
func (p *persisted) forget(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.statuses, request)
}
