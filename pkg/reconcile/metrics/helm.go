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
