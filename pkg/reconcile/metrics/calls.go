// Package metrics has what the controllers measure besides controller-runtime's own metrics.
//
// kube-state-metrics cannot see aggregated kinds, so omni_resource_info and its neighbours are the only metrics that
// users have about their objects. The series of an object are removed with the object. No label and no value ever
// contains a secret.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls measures calls to Omni. It is safe for concurrent use and implements
// prometheus.Collector.
type Calls struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	waited   *prometheus.CounterVec

	mu    sync.Mutex
	names map[string]string // a connection's namespace/name by its UID
}

// NewCalls returns a collector without calls.
func NewCalls() *Calls {
	return &Calls{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "omni_api_requests_total",
			Help: "Finished calls to Omni. A watch counts when it ends.",
		}, []string{"connection", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "omni_api_request_duration_seconds",
			Help:    "How long calls to Omni took, in seconds. Watches are not in it.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"connection", "method"}),
		waited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "omni_api_throttled_seconds_total",
			Help: "How long calls to Omni waited for the controller's own rate limit, in seconds.",
		}, []string{"connection"}),
		names: map[string]string{},
	}
}

// Name sets the OmniConnection (namespace/name) of a UID.
func (c *Calls) Name(uid, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.names[uid] = name
}

// Forget removes every series of an OmniConnection (namespace/name).
func (c *Calls) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for uid, known := range c.names {
		if known == name {
			delete(c.names, uid)
		}
	}

	c.requests.DeletePartialMatch(prometheus.Labels{"connection": name})
	c.duration.DeletePartialMatch(prometheus.Labels{"connection": name})
	c.waited.DeleteLabelValues(name)
}

// Throttle counts how long a call of the connection with the UID waited for the rate limit.
func (c *Calls) Throttle(uid string, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if name, known := c.names[uid]; known {
		c.waited.WithLabelValues(name).Add(waited.Seconds())
	}
}

// Observe counts one finished call of the connection with the UID. It ignores connections without a Name: their series
// would never be removed.
func (c *Calls) Observe(uid, method, code string, duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	name, known := c.names[uid]
	if !known {
		return
	}

	c.requests.WithLabelValues(name, method, code).Inc()

	if method != watchMethod {
		c.duration.WithLabelValues(name, method).Observe(duration.Seconds())
	}
}

// watchMethod is the one call that lasts as long as its caller wants.
const watchMethod = "/cosi.resource.State/Watch"

// Describe implements prometheus.Collector.
func (c *Calls) Describe(descriptions chan<- *prometheus.Desc) {
	c.requests.Describe(descriptions)
	c.duration.Describe(descriptions)
	c.waited.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (c *Calls) Collect(collected chan<- prometheus.Metric) {
	c.requests.Collect(collected)
	c.duration.Collect(collected)
	c.waited.Collect(collected)
}

// The results of Helm actions.
const (
	HelmSucceeded   = "success"
	HelmFailed      = "failure"
	HelmInterrupted = "interrupted"
)

// HelmActions counts actions on Helm releases. It is safe for concurrent use and implements prometheus.Collector.
type HelmActions struct{ *prometheus.CounterVec }

// NewHelmActions makes a collector. Failures of the given actions are there from the start, as 0: Prometheus sees how much a
// counter grows, and so no failure with which it begins.
func NewHelmActions(actions ...string) HelmActions {
	counted := HelmActions{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "omni_helm_actions_total",
		Help: "Helm actions that have ended, such as install, upgrade, rollback, uninstall, test, unlock and correct.",
	}, []string{"action", "result"})}

	for _, action := range actions {
		counted.WithLabelValues(action, HelmFailed)
	}

	return counted
}

// Ended counts an action; result is one of the constants of this package.
func (h HelmActions) Ended(action, result string) { h.WithLabelValues(action, result).Inc() }

// HelmQueue tells how many actions on Helm releases are at work, and how many wait for their turn. It implements
// prometheus.Collector.
type HelmQueue struct {
	load             func() (running int64, waiting int)
	running, waiting *prometheus.Desc
}

// NewHelmQueue makes a collector of what load returns.
func NewHelmQueue(load func() (running int64, waiting int)) *HelmQueue {
	return &HelmQueue{
		load:    load,
		running: prometheus.NewDesc("omni_helm_actions_running", "Helm actions that are at work now.", nil, nil),
		waiting: prometheus.NewDesc("omni_helm_actions_waiting", "Helm actions that wait for their turn.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (h *HelmQueue) Describe(descs chan<- *prometheus.Desc) {
	descs <- h.running
	descs <- h.waiting
}

// Collect implements prometheus.Collector.
func (h *HelmQueue) Collect(into chan<- prometheus.Metric) {
	running, waiting := h.load()

	into <- prometheus.MustNewConstMetric(h.running, prometheus.GaugeValue, float64(running))
	into <- prometheus.MustNewConstMetric(h.waiting, prometheus.GaugeValue, float64(waiting))
}

// WorkloadRuns tells how many runs wait before they may work in a workload cluster. It implements prometheus.Collector.
type WorkloadRuns struct {
	load    func(kind string) (forCluster, forNamespace int)
	kinds   []string
	waiting *prometheus.Desc
}

// NewWorkloadRuns makes a collector of what load returns for each of the kinds: how many runs wait for a slot of their workload
// cluster, and how many for one of their namespace.
func NewWorkloadRuns(load func(kind string) (forCluster, forNamespace int), kinds ...string) *WorkloadRuns {
	return &WorkloadRuns{
		load: load, kinds: kinds,
		waiting: prometheus.NewDesc("omni_workload_runs_waiting",
			"Objects whose runs wait for a slot of their workload cluster or of their namespace.", []string{"kind", "slot"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (w *WorkloadRuns) Describe(descs chan<- *prometheus.Desc) { descs <- w.waiting }

// Collect implements prometheus.Collector.
func (w *WorkloadRuns) Collect(into chan<- prometheus.Metric) {
	for _, kind := range w.kinds {
		forCluster, forNamespace := w.load(kind)

		into <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(forCluster), kind, "cluster")
		into <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(forNamespace), kind, "namespace")
	}
}
