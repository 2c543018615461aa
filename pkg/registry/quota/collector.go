package quota

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// fullest is how many namespaces have metrics of their own: those nearest to their limits.
const fullest = 20

// Collector reads the ledger whenever metrics are collected.
type Collector struct {
	metrics.BaseStableCollector

	ledger *Ledger
}

var _ metrics.StableCollector = &Collector{}

// Collector returns the metrics of the ledger, to be registered once, for example with legacyregistry.CustomRegister.
func (l *Ledger) Collector() *Collector { return &Collector{ledger: l} }

func description(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc("omni_apiserver_"+name, help, labels, nil, metrics.ALPHA, "")
}

//nolint:gochecknoglobals // constants
var (
	storedObjects   = description("stored_objects", "Stored objects by resource.", "resource")
	storedBytes     = description("stored_bytes", "Stored bytes by resource, as JSON before encryption.", "resource")
	limit           = description("stored_limit", "Limit of what is stored, by its flag; 0 is none.", "flag")
	refusals        = description("quota_refusals_total", "Writes that were refused because of a limit, by its flag.", "flag")
	namespaces      = description("namespaces_with_objects", "Namespaces that have objects.")
	namespaceObject = description("namespace_stored_objects", "Stored objects of the 20 namespaces that are nearest to their limits.", "in_namespace")
	namespaceBytes  = description("namespace_stored_bytes", "Stored bytes of the 20 namespaces that are nearest to their limits.", "in_namespace")
)

// DescribeWithStability implements metrics.StableCollector.
func (*Collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, each := range []*metrics.Desc{storedObjects, storedBytes, limit, refusals, namespaces, namespaceObject, namespaceBytes} {
		ch <- each
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *Collector) CollectWithStability(ch chan<- metrics.Metric) {
	l := c.ledger

	l.mu.Lock()
	kinds, accounts, refused := maps.Clone(l.kinds), maps.Clone(l.namespaces), maps.Clone(l.refused)
	l.mu.Unlock()

	gauge := func(desc *metrics.Desc, value int64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, float64(value), labels...)
	}

	for kind, use := range kinds {
		if kind.namespace == "" {
			gauge(storedObjects, use.Objects, kind.resource)
			gauge(storedBytes, use.Bytes, kind.resource)
		}
	}

	for _, each := range l.limits.Each() {
		gauge(limit, each.Value, each.Flag)
		ch <- metrics.NewLazyConstMetric(refusals, metrics.CounterValue, float64(refused[each.Flag]), each.Flag)
	}

	gauge(namespaces, int64(len(accounts)))

	for _, name := range c.nearest(accounts) {
		gauge(namespaceObject, accounts[name].used.Objects, name)
		gauge(namespaceBytes, accounts[name].used.Bytes, name)
	}
}

// nearest returns the namespaces that have used the largest share of one of their limits.
func (c *Collector) nearest(accounts map[string]account) []string {
	share := func(name string) float64 {
		used, limits := accounts[name].used, c.ledger.limits

		return max(float64(used.Objects)/float64(max(limits.NamespaceObjects, 1)), float64(used.Bytes)/float64(max(limits.NamespaceBytes, 1)))
	}

	names := slices.SortedFunc(maps.Keys(accounts), func(a, b string) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), cmp.Compare(a, b))
	})

	return names[:min(len(names), fullest)]
}

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
