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
	// persistPoll is how often the cache is looked at for a status that was just stored:
	// its event comes within milliseconds.
	persistPoll = 5 * time.Millisecond
	// persistTimeout is how long that status is waited for. A run that begins without it
	// does no harm: its write has a conflict, or it asks for the same status again.
	persistTimeout = 10 * time.Second
)

// errNothingPersisted is a phase that waits for a status that is as it was: it would
// wait for ever.
var errNothingPersisted = errors.New("a phase asked to store a status that did not change")

// persisted remembers the statuses that the cache has yet to show.
type persisted struct {
	now func() time.Time

	mu       sync.Mutex
	statuses map[reconcile.Request]storedStatus
}

// storedStatus is the version of an object whose status a phase asked to store.
type storedStatus struct {
	uid     types.UID
	version string
	at      time.Time
}

func newPersisted() *persisted {
	return &persisted{now: time.Now, statuses: map[reconcile.Request]storedStatus{}}
}

// stored notes what a run stored. The object has the version of the patch, unless it
// is gone.
func (p *persisted) stored(request reconcile.Request, before, object client.Object) error {
	if apiequality.Semantic.DeepEqual(before, object) {
		return errNothingPersisted
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.statuses[request] = storedStatus{uid: object.GetUID(), version: object.GetResourceVersion(), at: p.now()}

	return nil
}

// awaited reports whether an object from the cache is older than the status that was
// stored for it.
func (p *persisted) awaited(request reconcile.Request, cached client.Object) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	status, found := p.statuses[request]
	if !found {
		return false
	}

	// Versions that cannot be compared say nothing: the run looks for itself.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), status.version)
	if err == nil && order < 0 && cached.GetUID() == status.uid && p.now().Sub(status.at) < persistTimeout {
		return true
	}

	delete(p.statuses, request)

	return false
}

// forget is for an object that does not exist any more.
func (p *persisted) forget(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.statuses, request)
}
