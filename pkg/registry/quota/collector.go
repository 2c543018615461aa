package quota

import (
	"cmp"
	"maps"
	"slices"

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
