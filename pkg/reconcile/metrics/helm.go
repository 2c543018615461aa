package metrics

import "github.com/prometheus/client_golang/prometheus"

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
