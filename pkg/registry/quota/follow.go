package quota

import (
	"context"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source is the store of a kind.
type Source interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error)
	// ReadinessCheck fails while the kind's watch cache is being filled.
	ReadinessCheck() error
}

// readyPause is the pause between two checks of whether a cache is filled.
const readyPause = 50 * time.Millisecond

// Follow counts the objects of the sources, by resource, until the context ends. Call it once.
func (l *Ledger) Follow(ctx context.Context, sources map[string]Source) {
	l.mu.Lock()
	for resource := range sources {
		l.pending[resource] = true
	}
	l.mu.Unlock()

	for resource, source := range sources {
		go follow(ctx, source, &feed{l, resource})
	}
}

// follow waits until the kind's watch cache is filled before it starts a reflector: a reflector whose lists are
// refused waits longer and longer between attempts.
func follow(ctx context.Context, source Source, into *feed) {
	for source.ReadinessCheck() != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(readyPause):
		}
	}

	// The expected type is nil: the cache wraps objects that it sends to several watches.
	cache.NewReflectorWithOptions(&listWatch{ctx, source}, nil, into,
		cache.ReflectorOptions{Name: "stored " + into.resource}).RunWithContext(ctx)
}

// listWatch reads the watch cache of a kind, over all namespaces.
type listWatch struct {
	ctx    context.Context //nolint:containedctx // the interface has none
	source Source
}

var _ cache.ListerWatcher = &listWatch{}

// IsWatchListSemanticsUnSupported makes the reflector list instead of streaming: a list shares the objects of the
// cache, a watch copies them.
func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.Lister.
func (w *listWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return w.source.List(w.ctx, &metainternalversion.ListOptions{ResourceVersion: options.ResourceVersion}) // the reflector knows it
}

// Watch implements cache.Watcher.
func (w *listWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return w.source.Watch(w.ctx, &metainternalversion.ListOptions{ // the reflector knows it
		ResourceVersion: options.ResourceVersion, AllowWatchBookmarks: options.AllowWatchBookmarks,
	})
}

// feed is the reflector's store: it keeps sizes, not objects.
type feed struct {
	ledger   *Ledger
	resource string
}

var _ cache.ReflectorStore = &feed{}

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error { return f.ledger.observe(f.resource, obj, false) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.ledger.observe(f.resource, obj, false) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error { return f.ledger.observe(f.resource, obj, true) }

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(all []any, version string) error {
	return f.ledger.recount(f.resource, all, versionOf(version))
}

// Resync implements cache.ReflectorStore.
func (*feed) Resync() error { return nil }
