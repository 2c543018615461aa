package embeddedetcd

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/component-base/metrics"
)

// UpkeepMetrics are those of the database. Make them with NewMetrics.
type UpkeepMetrics struct {
	size            *metrics.Gauge
	inUse           *metrics.Gauge
	quota           *metrics.Gauge
	alarm           *metrics.GaugeVec
	defragmented    *metrics.CounterVec
	defragmentation *metrics.Gauge
}

// NewUpkeepMetrics makes the metrics and registers them, for example with legacyregistry.Register.
func NewUpkeepMetrics(register func(metrics.Registerable) error) (*UpkeepMetrics, error) {
	gauge := func(name, help string) *metrics.Gauge {
		return metrics.NewGauge(&metrics.GaugeOpts{Name: "omni_apiserver_etcd_" + name, Help: help})
	}
	m := &UpkeepMetrics{
		size:  gauge("db_size_bytes", "Size of the database file of the embedded etcd. At the quota, writes are refused."),
		inUse: gauge("db_in_use_bytes", "Size of the database of the embedded etcd without the free space in the file."),
		quota: gauge("quota_bytes", "Limit of the size of the database file (--etcd-quota-backend-bytes)."),
		alarm: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name: "omni_apiserver_etcd_alarm",
			Help: "1 while etcd refuses to work: NOSPACE no writes, CORRUPT nothing.",
		}, []string{"alarm"}),
		defragmented: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: "omni_apiserver_etcd_defragmentations_total",
			Help: "Defragmentations of the embedded etcd by result: success or failure.",
		}, []string{"result"}),
		defragmentation: gauge("defragmentation_last_duration_seconds",
			"How long the last defragmentation took. Requests waited for it."),
	}

	if err := errors.Join(register(m.size), register(m.inUse), register(m.quota), register(m.alarm),
		register(m.defragmented), register(m.defragmentation)); err != nil {
		return nil, fmt.Errorf("register the metrics of etcd: %w", err)
	}

	return m, nil
}

func (m *UpkeepMetrics) observe(s databaseState) {
	m.size.Set(float64(s.size))
	m.inUse.Set(float64(s.inUse))
	m.quota.Set(float64(s.quota))

	for alarm, raised := range map[string]bool{"NOSPACE": s.full, "CORRUPT": s.corrupt} {
		value := 0.0
		if raised {
			value = 1
		}

		m.alarm.WithLabelValues(alarm).Set(value)
	}
}

func (m *UpkeepMetrics) observeDefragmentation(took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}

	m.defragmented.WithLabelValues(result).Inc()
	m.defragmentation.Set(took.Seconds())
}
