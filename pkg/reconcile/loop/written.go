package loop

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// writtenPoll is how often the cache is checked for our own last write: its event arrives within milliseconds.
	writtenPoll = 5 * time.Millisecond
	// writtenTimeout is how long the loop waits for it. A run that begins without it does no harm: its write has a
	// conflict, or it returns Persist for the same status again.
	writtenTimeout = 10 * time.Second
)

// errNothingPersisted is the error of a phase that returned Persist without a change of the status: it would wait for
// ever.
var errNothingPersisted = errors.New("a phase asked to store a status that did not change")

// written records our own writes that the cache does not show yet.
type written struct {
	now func() time.Time

	mu     sync.Mutex
	writes map[reconcile.Request]write
}

// write is the version of an object after a write.
type write struct {
	uid     types.UID
	version string
	at      time.Time
}

func newWritten() *written {
	return &written{now: time.Now, writes: map[reconcile.Request]write{}}
}

// note records a write. The object has the version that the write made.
func (w *written) note(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	w.writes[request] = write{uid: object.GetUID(), version: object.GetResourceVersion(), at: w.now()}
}

// awaited reports whether an object from the cache is older than our last write to it.
func (w *written) awaited(request reconcile.Request, cached client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	last, found := w.writes[request]
	if !found {
		return false
	}

	// Versions that cannot be compared are ignored: the run decides by itself.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version)
	if err == nil && order < 0 && cached.GetUID() == last.uid && w.now().Sub(last.at) < writtenTimeout {
		return true
	}

	delete(w.writes, request)

	return false
}

// forget removes what is kept about an object that no longer exists.
func (w *written) forget(request reconcile.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.writes, request)
}
