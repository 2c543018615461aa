package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// writtenPoll is the first pause before the cache is checked for our own last write: its event arrives within
	// milliseconds. On a busy machine it takes longer, and checks cost time, too: the pauses double, up to longestPoll.
	writtenPoll = 5 * time.Millisecond
	longestPoll = time.Second
	// writtenTimeout is how long the loop waits for it. A run that begins without it does no harm: its write has a
	// conflict, or it returns Persist for the same status again.
	writtenTimeout = 10 * time.Second
)

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

// awaited returns when to look at an object from the cache again that is older than our last write to it. 0: it is not.
func (w *written) awaited(request reconcile.Request, cached client.Object) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	last, found := w.writes[request]
	if !found {
		return 0
	}

	// Versions that cannot be compared are ignored: the run decides by itself.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version)
	if age := w.now().Sub(last.at); err == nil && order < 0 && cached.GetUID() == last.uid && age < writtenTimeout {
		return min(max(writtenPoll, age), longestPoll)
	}

	delete(w.writes, request)

	return 0
}

// forget removes what is kept about an object that no longer exists.
func (w *written) forget(request reconcile.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.writes, request)
}
