package metrics

import "github.com/prometheus/client_golang/prometheus"

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
